"""Why ours differs from Linux, where it does: each reason names a run that shows it."""

from __future__ import annotations

from collections.abc import Mapping

from sparelane.experiments.linux.paths import PATHS
from sparelane.experiments.linux.rows import FLIGHT, QUEUE, USE, fct, over_time
from sparelane.experiments.rows import NOT_EXPLAINED, Key

SLOW, FAST, SHALLOW, LONG, _, LOSSY, LOSSY_SHALLOW = PATHS

# CDG draws when it gives way. Without, there is nothing left to differ.
DRAWN = (
    'what CDG draws: where it never gives way to delays (rows "no backoff for delays", '
    "`--set scheme.flow.backoff_factor=0`), both sides take the same time to 0.2 %; "
    "whether ours gives way more often here, too, as it does at 10 Mb/s, 20 seeds do not tell"
)
SLOWLY = (
    f"{NOT_EXPLAINED}: ours gives way to delays more often, on windows of 10 to 16 segments, where Linux has 13 to 26; "
    "the figure shows that Linux's flight then falls over a round trip, and ours at once"
)
# What TCP-LP draws: the beginning of its timestamps, on which it depends whether a flow takes one or the other time.
TIMESTAMPS = (
    "what TCP-LP draws: a flow takes the longer one of two times in 12 to 16 % of 200 seeds (`--seeds 200`), and the "
    "means over 20 differ"
)

# Of differences above 10 %, which stand beside the rows.
REASONS: Mapping[Key, str] = {
    **{fct(path, "cdg", 2): DRAWN for path in (FAST, LONG, LOSSY)},
    over_time(SLOW, "cdg", FLIGHT): SLOWLY,
    over_time(SLOW, "cdg", QUEUE): SLOWLY,
    over_time(SLOW, "bbr", QUEUE): f"{NOT_EXPLAINED}: 1 kB of queue; it is the same under 20 seeds of ours",
}
# Of those between 5 and 10 %, which are named in a note.
SMALLER: Mapping[Key, str] = {
    **{fct(path, "cdg", 1): DRAWN for path in (FAST, LONG, LOSSY, LOSSY_SHALLOW)},
    **{over_time(path, "cdg", metric): DRAWN for path in (FAST, LONG) for metric in (FLIGHT, QUEUE, USE)},
    **{fct(path, "lp", 2): TIMESTAMPS for path in (SHALLOW, LONG, LOSSY, LOSSY_SHALLOW)},
    fct(LOSSY_SHALLOW, "lp", 1): TIMESTAMPS,
    over_time(LONG, "lp", QUEUE): TIMESTAMPS,
}

"""Why ours differs from Linux, where it does: each reason names a run that shows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sparelane.papers.engine.rows import Key
from sparelane.papers.linux.paths import AT_EACH_RISE, PATHS
from sparelane.papers.linux.rows import FLIGHT, QUEUE, USE, fct, over_time

SLOW, FAST, SHALLOW, LONG, FASTEST, LOSSY, LOSSY_SHALLOW = PATHS

# CDG draws when it gives way. Without, there is nothing left to differ.
DRAWN = (
    'what CDG draws: where it never gives way to delays (rows "no backoff for delays", '
    "`--set scheme.flow.backoff_factor=0`), and where it gives way to each rise "
    '(rows "a backoff for each rise of delays", `--set scheme.flow.backoff_factor=10000`), both sides take the same '
    "time to 0.2 %; a flow that gives way in slow start, one of ten, takes several times as long, and 20 seeds have "
    "few of them"
)
# How a queue of about one packet is seen.
SAMPLED = (
    "a mean of 85 bytes, in 197 samples of a queue that mostly is empty; sampled every 2.7 ms (`sample.interval`) the "
    "difference is -1.3 %"
)
# The queue of a window that does not fill the link.
EMPTY = (
    "NV's window does not fill the link, and the queue is empty but for packets that leave a host in one instant: a "
    "mean of less than a tenth of a packet, of a few samples. Sampled every 0.2 ms (`sample.interval`), the queue at "
    "100 Mb/s and 100 ms is the same to 0.5 %; elsewhere Linux also leaves out some acknowledgments, so that two "
    "packets leave at once: where it leaves out none (`--set transport.delayed_ack=false`), completion times agree to "
    "0.1 %"
)
# What TCP-LP draws: the beginning of its timestamps, on which it depends whether a flow takes one or the other time.
TIMESTAMPS = (
    "what TCP-LP draws: a flow takes the longer one of two times in 12 to 16 % of 200 seeds (`--seeds 200`), and the "
    "means over 20 differ"
)

# Of differences above 10 %, which stand beside the rows.
REASONS: Mapping[Key, str] = {
    **{fct(path, "cdg", 2): DRAWN for path in (FAST, LONG, LOSSY)},
    **{over_time(path, "nv", QUEUE): EMPTY for path in (FAST, SHALLOW, LONG, FASTEST, LOSSY)},
}
# Of those between 5 and 10 %, which are named in a note.
SMALLER: Mapping[Key, str] = {
    **{fct(path, "cdg", size): DRAWN for path in (SLOW, FAST, LONG, LOSSY, LOSSY_SHALLOW) for size in (1, 2)},
    **{over_time(path, "cdg", metric): DRAWN for path in (SLOW, FAST, LONG, LOSSY) for metric in (FLIGHT, QUEUE, USE)},
    replace(over_time(SLOW, "cdg", QUEUE), variant=AT_EACH_RISE): SAMPLED,
    **{fct(path, "lp", 2): TIMESTAMPS for path in (SHALLOW, LONG, LOSSY, LOSSY_SHALLOW)},
    fct(LOSSY_SHALLOW, "lp", 1): TIMESTAMPS,
    over_time(LONG, "lp", QUEUE): TIMESTAMPS,
}

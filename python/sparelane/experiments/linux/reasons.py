"""Why ours differs from Linux, where it does: each reason names a run that shows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sparelane.experiments.linux.paths import AT_EACH_RISE, PATHS
from sparelane.experiments.linux.rows import FLIGHT, QUEUE, USE, fct, over_time
from sparelane.experiments.rows import Key

SLOW, FAST, SHALLOW, LONG, _, LOSSY, LOSSY_SHALLOW = PATHS

# CDG draws when it gives way. Without, there is nothing left to differ.
DRAWN = (
    'what CDG draws: where it never gives way to delays (rows "no backoff for delays", '
    "`--set scheme.flow.backoff_factor=0`), and where it gives way to each rise "
    '(rows "a backoff for each rise of delays", `--set scheme.flow.backoff_factor=10000`), both sides take the same '
    "time to 0.2 %; a flow that gives way in slow start, one of ten, takes several times as long, and 20 seeds have "
    "few of them"
)
# Round trips in ticks of 10 ms, and by timestamps of 1 ms where a retransmission is acknowledged.
MILLISECONDS = (
    "Linux knows the round-trip time of what was sent again by timestamps, in whole milliseconds: 20.05 ms are 20 "
    "then, or two ticks of its clock in place of three, and Westwood's window is by a third smaller; ours takes no "
    "such time. Without timestamps "
    '(rows "no timestamps", `--set transport.mss=1460B --set transport.header=40B`) both sides agree'
)
# How a queue of about one packet is seen.
SAMPLED = (
    "a mean of 85 bytes, in 197 samples of a queue that mostly is empty; sampled every 2.7 ms (`sample.interval`) the "
    "difference is -1.3 %"
)
# When RACK looks for losses.
TIMER = (
    "the timer for reordering (RACK) fires a quarter of the least round-trip time after a packet was overtaken, and in "
    "Linux at least 2 ms later: here ours sends the first retransmission by that timer into a full queue, and Linux by "
    "the third arrival. Where the third arrival comes before both (rows of 10 Mb/s, 20 ms), both sides agree"
)
# What TCP-LP draws: the beginning of its timestamps, on which it depends whether a flow takes one or the other time.
TIMESTAMPS = (
    "what TCP-LP draws: a flow takes the longer one of two times in 12 to 16 % of 200 seeds (`--seeds 200`), and the "
    "means over 20 differ"
)

# Of differences above 10 %, which stand beside the rows.
REASONS: Mapping[Key, str] = {
    **{fct(path, "cdg", 2): DRAWN for path in (FAST, LONG, LOSSY)},
}
# Of those between 5 and 10 %, which are named in a note.
SMALLER: Mapping[Key, str] = {
    **{fct(path, "cdg", size): DRAWN for path in (SLOW, FAST, LONG, LOSSY, LOSSY_SHALLOW) for size in (1, 2)},
    **{over_time(path, "cdg", metric): DRAWN for path in (SLOW, FAST, LONG, LOSSY) for metric in (FLIGHT, QUEUE, USE)},
    **{over_time(SHALLOW, "westwood", metric): MILLISECONDS for metric in (FLIGHT, QUEUE, USE)},
    fct(SHALLOW, "westwood", 2): MILLISECONDS,
    fct(LOSSY_SHALLOW, "westwood", 2): MILLISECONDS,
    replace(over_time(SLOW, "cdg", QUEUE), variant=AT_EACH_RISE): SAMPLED,
    **{over_time(SLOW, "illinois", metric): TIMER for metric in (FLIGHT, QUEUE)},
    **{fct(path, "lp", 2): TIMESTAMPS for path in (SHALLOW, LONG, LOSSY, LOSSY_SHALLOW)},
    fct(LOSSY_SHALLOW, "lp", 1): TIMESTAMPS,
    over_time(LONG, "lp", QUEUE): TIMESTAMPS,
}

"""The model of RC3's gain, NSDI 2014 section 3: completion times without queues, drops or other flows.

The functions `*_smooth` are the paper's formula, in which the number of rounds of slow start is a real-valued
logarithm; Fig. 4 plots it. The functions `*_rounds` count whole rounds, and add half a round trip each for the
handshake and for the way of the last byte. They also count bytes as they are on the wire. The authors plotted this form
in Fig. 7 under the name "model".

Sizes are in segments of 1460 bytes, times in seconds, and rates in bits per second.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

MSS_BYTES = 1460
WIRE_BYTES = 1500

# The flow sizes of the paper's workload in segments, with the share of flows of each size (Allman, CCR 2013).
FLOW_SIZES: Mapping[int, float] = {
    1: 0.5,
    2: 0.1,
    3: 0.1,
    5: 0.05,
    7: 0.05,
    40: 0.0125,
    72: 0.0125,
    137: 0.025,
    267: 0.05,
    1187: 0.05,
    2107: 0.05,
}


@dataclass(frozen=True, slots=True)
class Path:
    """The path of a flow.

    Attributes:
        rtt_s: the round-trip time.
        available_bps: A in the paper, the capacity that other flows leave: (1 - load) x bandwidth.
        initial_window: i in the paper, in segments.
    """

    rtt_s: float
    available_bps: float
    initial_window: int = 4

    @property
    def segment_s(self) -> float:
        """Returns the time of one full segment at the available rate."""
        return WIRE_BYTES * 8 / self.available_bps

    @property
    def pipe_segments(self) -> float:
        """Returns A x RTT in segments."""
        return self.rtt_s / self.segment_s


def reduction(tcp_s: float, rc3_s: float) -> float:
    """Returns the difference between TCP's completion time and RC3's, in percent of TCP's."""
    return 100.0 * (tcp_s - rc3_s) / tcp_s


def rc3_smooth(segments: float, path: Path) -> float:
    """Returns RTT + N/A, since RC3 fills the pipe in the first round trip."""
    return path.rtt_s + segments * path.segment_s


def tcp_smooth(segments: float, path: Path) -> float:
    """Returns RC3's time and log2(min(N, A x RTT) / i) round trips of slow start."""
    rounds = math.log2(min(segments, path.pipe_segments) / path.initial_window)
    return rc3_smooth(segments, path) + max(rounds, 0.0) * path.rtt_s


def rc3_rounds(segments: int, path: Path) -> float:
    """Returns the time of the handshake, the way to the receiver, and all segments at the available rate."""
    return 1.5 * path.rtt_s + segments * path.segment_s


def tcp_rounds(segments: int, path: Path) -> float:
    """Returns RC3's time, with one RTT for each round of slow start that does not fill the pipe."""
    window, left, time_s = path.initial_window, segments, 1.5 * path.rtt_s
    while left > window and window < path.pipe_segments:
        left -= window
        window *= 2
        time_s += path.rtt_s
    return time_s + left * path.segment_s

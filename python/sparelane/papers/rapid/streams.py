"""P-streams in a log of packets: their gaps as the controller sees them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from sparelane.papers.rapid import testbed

Numbers = NDArray[np.float64]

# The gap before the first packet of a p-stream exceeds that before it by more than this.
RISE = 1.02


@dataclass(frozen=True, slots=True)
class Samples:
    """What acknowledgments tell of the packets of p-streams, in order.

    Attributes:
        send_s: gaps between the due times of two packets whose arrivals are known.
        receive_s: gaps between these arrivals.
        rate_bps: the rate that the second of the two probes.
        stream: the p-stream that it is part of, from 0.
    """

    send_s: Numbers
    receive_s: Numbers
    rate_bps: Numbers
    stream: NDArray[np.int64]

    def of(self, stream: int) -> Samples:
        """The samples of one p-stream."""
        these = self.stream == stream
        return Samples(self.send_s[these], self.receive_s[these], self.rate_bps[these], self.stream[these])


def samples(packets: pl.DataFrame) -> Samples:
    """The samples of a log without losses, from the first p-stream that is there from its beginning."""
    due_s = packets["due_s"].to_numpy()
    gap_s = np.diff(due_s)
    rises = np.flatnonzero(gap_s[1:] > RISE * gap_s[:-1]) + 2
    first = int(rises[0])
    number = np.searchsorted(rises, np.arange(len(due_s)), side="right") - 1
    known = np.flatnonzero(packets["stamped_s"].is_not_null().to_numpy())
    known = known[known >= first - 1]
    stamped_s = packets["stamped_s"].to_numpy()
    later = known[1:]
    return Samples(
        np.diff(due_s[known]),
        np.diff(stamped_s[known]),
        testbed.WIRE_BYTES * 8 / gap_s[later - 1],
        np.maximum(number[later], 0),
    )

"""The rows and claims of `peers.py`, and the comparison of two results. Performs no input or output."""

import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass

# The claim on htsim's listed speed, which was measured on another machine, and on its speed in the same run.
CLAIMED_TIMES_HTSIM_LISTED = 6.0
CLAIMED_TIMES_HTSIM = 10.0
CLAIMED_TIMES_NS3 = 100.0


class PeersError(Exception):
    """The comparison cannot be made. The message is shown to the user."""


@dataclass(frozen=True, slots=True)
class Row:
    """One workload with one duration, and its listed speeds.

    Attributes:
        workload: The file name without extension.
        simulated_s: The simulated time in seconds.
        ssthresh_packets: The initial slow-start threshold in packets; `None` for no threshold.
        long: Whether ns-3 is too slow to run without --full.
        htsim_listed: The lowest and highest speed of htsim in 10^6 packet-hops per CPU second; `None` if not measured.
        ns3_listed: The speed of an optimised build of ns-3 in the same unit; `None` if not measured.
    """

    workload: str
    simulated_s: float
    ssthresh_packets: int | None
    long: bool
    htsim_listed: tuple[float, float] | None
    ns3_listed: float | None


# The listed speeds were measured on the same workloads, with csg-htsim (TCP without SACK) and an optimised build of
# ns-3.48, as CPU time on a busy machine with two cores. For a range of htsim's speeds, the claim uses the upper end.
# The packaged ns-3 that runs here has assertions enabled, which makes it 1.6 to 1.8 times slower than an optimised
# build. The claim must therefore hold for the listed speed as well.
ROWS = (
    Row("dumbbell10", 1.0, 400, long=False, htsim_listed=None, ns3_listed=None),
    Row("dumbbell10", 10.0, 400, long=True, htsim_listed=(8.7, 8.7), ns3_listed=0.112),
    Row("abilene30", 0.3, None, long=False, htsim_listed=(3.3, 3.3), ns3_listed=0.152),
    Row("abilene30", 2.0, None, long=True, htsim_listed=(2.8, 3.4), ns3_listed=0.057),
    Row("leafspine", 0.002, 20, long=False, htsim_listed=(2.8, 2.8), ns3_listed=0.127),
    Row("leafspine", 0.05, 20, long=True, htsim_listed=(2.4, 2.4), ns3_listed=None),
)

COMPLETION_WORKLOAD = "abilene30"

# Ranges of flow sizes in bytes; the upper bound is exclusive.
BUCKETS = (
    ("below 10 kB", 0, 10_000),
    ("10 to 100 kB", 10_000, 100_000),
    ("100 kB to 1 MB", 100_000, 1_000_000),
    ("1 to 10 MB", 1_000_000, 10_000_000),
    ("10 MB and more", 10_000_000, sys.maxsize),
    ("all", 0, sys.maxsize),
)


@dataclass(frozen=True, slots=True)
class Speed:
    """The work, CPU time and peak memory (in 10^6 bytes) of one simulator on one row.

    `delivered_packets` is the number of packets that receivers got in order; `None` if the simulator does not print it.
    """

    packet_hops: int
    events: int
    cpu_s: float
    peak_rss_mb: float
    delivered_packets: int | None = None

    @property
    def mhops_per_s(self) -> float:
        """Return the speed in 10^6 packet-hops per second of CPU time."""
        return self.packet_hops / self.cpu_s / 1e6


def median_run(runs: Sequence[Speed]) -> Speed:
    """Return the run with the median CPU time; of an even number, the slower one of the two in the middle."""
    return sorted(runs, key=lambda run: run.cpu_s)[len(runs) // 2]


@dataclass(frozen=True, slots=True)
class Round:
    """One run of htsim and one of sparelane on the same row, one after the other on the same core."""

    htsim: Speed
    sparelane: Speed

    @property
    def ratio(self) -> float:
        """Return the speed of sparelane relative to htsim."""
        return self.sparelane.mhops_per_s / self.htsim.mhops_per_s


@dataclass(frozen=True, slots=True)
class HtsimPairs:
    """The rounds of one row.

    Attributes:
        rounds: At least one round.
        sparelane_delivered_packets: The number of full-size packets that sparelane's receivers got in order.
    """

    rounds: tuple[Round, ...]
    sparelane_delivered_packets: int

    @property
    def ratios(self) -> list[float]:
        """Return the ratio of each round, in increasing order."""
        return sorted(one.ratio for one in self.rounds)

    @property
    def htsim(self) -> Speed:
        """Return the run of htsim with the median CPU time."""
        return median_run([one.htsim for one in self.rounds])

    @property
    def sparelane(self) -> Speed:
        """Return the run of sparelane with the median CPU time."""
        return median_run([one.sparelane for one in self.rounds])


@dataclass(frozen=True, slots=True)
class Comparison:
    """The results of the simulators on one row.

    Attributes:
        row: The row.
        sparelane: The median run of sparelane.
        ns3: The run of ns-3; `None` if it did not run or was aborted.
        pairs: The rounds with htsim; `None` if htsim did not run.
    """

    row: Row
    sparelane: Speed
    ns3: Speed | None
    pairs: HtsimPairs | None = None

    @property
    def times_ns3(self) -> float | None:
        """Return the speed relative to the ns-3 that was run."""
        return self.sparelane.mhops_per_s / self.ns3.mhops_per_s if self.ns3 else None

    @property
    def times_ns3_listed(self) -> float | None:
        """Return the speed relative to the listed speed of an optimised ns-3."""
        return self.sparelane.mhops_per_s / self.row.ns3_listed if self.row.ns3_listed else None

    @property
    def times_htsim(self) -> float | None:
        """Return the median of the speeds relative to htsim in the same round."""
        return statistics.median(self.pairs.ratios) if self.pairs else None

    @property
    def times_htsim_listed(self) -> float | None:
        """Return the speed relative to the highest listed speed of htsim."""
        return self.sparelane.mhops_per_s / self.row.htsim_listed[1] if self.row.htsim_listed else None

    def misses(self) -> list[str]:
        """Return the parts of the claim that this row misses, such as `10 x htsim`.

        The listed speed of htsim counts only if htsim did not run.
        """
        held_against = (
            ("ns-3", self.times_ns3, CLAIMED_TIMES_NS3),
            ("optimised ns-3", self.times_ns3_listed, CLAIMED_TIMES_NS3),
            ("htsim", self.times_htsim, CLAIMED_TIMES_HTSIM),
            ("htsim as listed", None if self.pairs else self.times_htsim_listed, CLAIMED_TIMES_HTSIM_LISTED),
        )
        return [f"{claim:g} x {peer}" for peer, times, claim in held_against if times is not None and times < claim]

    def verdict(self) -> str:
        """Return the verdict on the claim as text."""
        misses = self.misses()
        return f"fail: under {', '.join(misses)}" if misses else "pass"


@dataclass(frozen=True, slots=True)
class Completion:
    """One flow in one simulator; `seconds` is its completion time, or `None` if it did not finish."""

    size_bytes: int
    seconds: float | None


@dataclass(frozen=True, slots=True)
class BucketComparison:
    """The flows of one size range that finished in both simulators. Means are in seconds, or `None` without flows."""

    bucket: str
    flows: int
    sparelane_mean_s: float | None
    ns3_mean_s: float | None
    mean_ratio: float | None
    median_ratio: float | None


def compare_completions(ours: Sequence[Completion], theirs: Sequence[Completion]) -> list[BucketComparison]:
    """Compare the flows that finished in both simulators, by size. Both lists are in order of start times."""
    pairs = []
    for number, (our, their) in enumerate(zip(ours, theirs, strict=False)):
        if our.size_bytes != their.size_bytes:
            raise PeersError(f"flow {number} has {our.size_bytes} bytes in sparelane and {their.size_bytes} in ns-3")
        if our.seconds is not None and their.seconds is not None:
            pairs.append((our.size_bytes, our.seconds, their.seconds))
    return [
        _compare_bucket(name, [(our_s, their_s) for size, our_s, their_s in pairs if low <= size < high])
        for name, low, high in BUCKETS
    ]


def _compare_bucket(name: str, pairs: Sequence[tuple[float, float]]) -> BucketComparison:
    if not pairs:
        return BucketComparison(name, 0, None, None, None, None)
    our_mean_s = statistics.fmean(our_s for our_s, _ in pairs)
    their_mean_s = statistics.fmean(their_s for _, their_s in pairs)
    return BucketComparison(
        bucket=name,
        flows=len(pairs),
        sparelane_mean_s=our_mean_s,
        ns3_mean_s=their_mean_s,
        mean_ratio=our_mean_s / their_mean_s,
        median_ratio=statistics.median(our_s / their_s for our_s, their_s in pairs),
    )

"""The simulated datacentre of the RTCP paper: its schemes, the runs in it, and their throughput and one-way delays.

The paper runs every scheme on the same spine-leaf network in ns-3 (sections V-B and V-C). The experiments there differ
in the workload and in a few settings. All of them compare throughput and the delays of packets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl

from sparelane.papers.engine.base import Effort, Outcome
from sparelane.papers.engine.cells import Cell, Runs
from sparelane.papers.engine.declared import named
from sparelane.papers.engine.rows import Key, Metric, Row, measured
from sparelane.reports import plots

SCENARIO = "rtcp-datacentre"
MSS_BYTES = 1460
# The share of a run before the measurement starts.
WARM_UP_SHARE = 0.2

# Windows of the null controller in segments: one bandwidth-delay product of long paths, and RTCP's x_max there.
NULL_WINDOWS = (10, 80)


def constant(window: int) -> str:
    """Returns the name in rows of a congestion window that never changes; `window` is in segments."""
    return f"constant window of {window}"


# The schemes by their names in rows, with their names in the scenario.
SCHEMES: Mapping[str, str] = {
    "NewReno": "newreno",
    "DCTCP": "dctcp",
    "BBR": "bbr",
    "TIMELY": "timely",
    "RTCP": "rtcp",
    "LEDBAT": "ledbat",
    "Vegas": "vegas",
    "constant": "constant",
    **dict.fromkeys(map(constant, NULL_WINDOWS), "constant"),
}
LOOKS: Mapping[str, plots.Look] = {
    "NewReno": plots.TCP,
    "DCTCP": plots.THIRD,
    "BBR": plots.MODEL,
    "TIMELY": plots.FIFTH,
    "RTCP": plots.RC3,
    "LEDBAT": plots.MODEL,
    "Vegas": plots.TCP,
}

# Values of `workload` other than the scenario's random sending, with `SCHEME` in place of the scheme. In the preemption
# test, both flows of a server start within a tenth of a millisecond, the urgent one after the other.
MIXES: Mapping[str, str] = {
    "": "",
    "incast": '{kind="bulk", pairs="incast", scheme="SCHEME", spread="1ms"}',
    "preemption": '[{kind="bulk", pairs="next", scheme="SCHEME", traffic_class="high-volume", spread="100us"}, '
    '{kind="bulk", pairs="next", scheme="SCHEME", traffic_class="urgent", start="200us", spread="100us"}]',
}

THROUGHPUT = Metric("throughput", "Mb/s")
DELAY = Metric("delay", "us")
MEAN, TAIL = "mean", "99th percentile"


def of(metric: Metric, other: str) -> Metric:
    """Returns the metric of a number in percent of another scheme's."""
    return Metric(f"{metric.name}, of {other}'s", "%")


METRICS = named(THROUGHPUT, DELAY, *(of(metric, other) for metric in (THROUGHPUT, DELAY) for other in SCHEMES))


@dataclass(frozen=True, slots=True)
class Run:
    """A scheme in a setting of the datacentre. Its cell depends on the effort, which determines the length of runs.

    Attributes:
        scheme: the scheme, a key of `SCHEMES`.
        settings: overrides of the scenario.
        setting: the setting in the keys of rows.
        variant: what differs from the paper, in the keys of rows.
        mix: the value of `workload` with `SCHEME` in place of the scheme; by default the scenario's random sending.
        lengths: the length of the run as a multiple of the effort's.
    """

    scheme: str
    settings: tuple[str, ...] = ()
    setting: str = "random sending"
    variant: str = ""
    mix: str = ""
    lengths: int = 1

    def varied(self, variant: str, *settings: str, lengths: int = 1) -> Run:
        """Returns the same run with further overrides."""
        return replace(self, variant=variant, settings=(*self.settings, *settings), lengths=lengths)

    def key(self, metric: Metric, average: str = "", traffic: str = "") -> Key:
        """Returns the key of a row of this run."""
        return Key(self.setting, metric, self.scheme, average, traffic, self.variant)

    def cell(self, effort: Effort) -> Cell:
        """Returns what is simulated at an effort."""
        scheme, stop_s = SCHEMES[self.scheme], self.lengths * effort.stop_s
        workload = f"workload={self.mix.replace('SCHEME', scheme)}" if self.mix else f"workload.scheme={scheme}"
        return Cell(
            SCENARIO,
            (
                workload,
                *self.settings,
                f"duration={stop_s * 1e3:g}ms",
                f"measure.from={WARM_UP_SHARE * stop_s * 1e3:g}ms",
            ),
            cost=30 * stop_s,
            keep_flows=True,
            setting=self.setting,
            scheme=self.scheme,
            variant=self.variant,
            stop_s=stop_s,
        )


def null_runs(rtcp: Run) -> list[Run]:
    """Returns the runs that RTCP has to differ from: constant windows, and RTCP that ignores congestion or delays."""
    kept = tuple(text for text in rtcp.settings if not text.startswith("scheme.rtcp."))
    windows = [
        replace(rtcp, scheme=constant(window), settings=(*kept, f"scheme.constant.window={window}"))
        for window in NULL_WINDOWS
    ]
    return [*windows, *(rtcp.varied(f"{name} = 0", f"scheme.rtcp.{name}=0") for name in ("alpha", "delta"))]


def throughput_mbps(outcome: Outcome, stop_s: float, traffic: str = "") -> float:
    """Returns the mean throughput of the flows of a traffic class, or of all, in megabits per second."""
    flows = outcome.flows.filter(pl.col("traffic_class") == traffic) if traffic else outcome.flows
    counted_s = (1 - WARM_UP_SHARE) * stop_s
    return float(flows.select(pl.col("measured_bytes").mean()).item()) * 8 / counted_s / 1e6


def delays(outcome: Outcome, traffic: str = "") -> pl.DataFrame:
    """Returns the number of packets for each delay, of a traffic class or of all."""
    table = outcome.delays.filter(pl.col("traffic_class") == traffic) if traffic else outcome.delays
    return table.group_by("delay_s").agg(pl.col("packets").sum()).sort("delay_s")


def mean_us(outcome: Outcome, traffic: str = "") -> float | None:
    """Returns the mean one-way delay of packets in microseconds; `None` without packets."""
    table = delays(outcome, traffic)
    if table.is_empty():
        return None
    return float(table.select((pl.col("delay_s") * pl.col("packets")).sum() / pl.col("packets").sum()).item()) * 1e6


def tail_us(outcome: Outcome, traffic: str = "") -> float | None:
    """Returns the 99th percentile of the delays in microseconds; `None` without packets."""
    table = delays(outcome, traffic).with_columns(pl.col("packets").cum_sum().alias("so_far"))
    reached = table.filter(pl.col("so_far") >= 0.99 * pl.col("packets").sum())
    return None if reached.is_empty() else float(reached["delay_s"][0]) * 1e6


def share_beyond(outcome: Outcome, us: float) -> float | None:
    """Returns the percentage of packets with a delay above `us` microseconds; `None` without packets."""
    table = delays(outcome)
    if table.is_empty():
        return None
    beyond = table.filter(pl.col("delay_s") > us / 1e6)["packets"].sum()
    return 100 * float(beyond) / float(table["packets"].sum())


def distribution(outcomes: Iterable[Outcome], traffic: str = "") -> pl.DataFrame:
    """Returns the cumulative distribution of the delays of several runs: `delay_us` and `share`."""
    table = pl.concat([delays(outcome, traffic) for outcome in outcomes])
    table = table.group_by("delay_s").agg(pl.col("packets").sum()).sort("delay_s")
    return table.select(
        (pl.col("delay_s") * 1e6).alias("delay_us"),
        (pl.col("packets").cum_sum() / pl.col("packets").sum()).alias("share"),
    )


# The three numbers of a scheme, each computed from an outcome, the length of the run and a traffic class.
STATISTICS: Mapping[tuple[Metric, str], Callable[[Outcome, float, str], float | None]] = {
    (THROUGHPUT, ""): throughput_mbps,
    (DELAY, MEAN): lambda outcome, stop_s, traffic: mean_us(outcome, traffic),
    (DELAY, TAIL): lambda outcome, stop_s, traffic: tail_us(outcome, traffic),
}


def values(runs: Runs, run: Run, metric: Metric, average: str = "", traffic: str = "") -> list[float | None]:
    """Returns a number of a run for each seed."""
    cell = run.cell(runs.effort)
    statistic = STATISTICS[metric, average]
    return [statistic(outcome, cell.stop_s, traffic) for outcome in runs.of(cell)]


def known(values: Iterable[float | None]) -> list[float]:
    """Returns the values that are numbers."""
    return [value for value in values if value is not None]


def scheme_rows(runs: Runs, run: Run, traffic: str = "") -> Iterable[Row]:
    """Yields throughput, mean delay and 99th percentile of a run."""
    for metric, average in STATISTICS:
        yield measured(run.key(metric, average, traffic), None, known(values(runs, run, metric, average, traffic)))


def ratio_row(key: Key, ours: Sequence[float | None], other: Sequence[float | None]) -> Row:
    """Returns a row of one number in percent of another, from the seeds in which both are known."""
    both = [100 * one / two for one, two in zip(ours, other, strict=True) if one is not None and two]
    return measured(key, None, both)


def ratio_to(runs: Runs, run: Run, other: Run, metric: Metric, average: str = "", traffic: str = "") -> Row:
    """Returns the row of a number of a run in percent of another run's."""
    both = [values(runs, one, metric, average, traffic) for one in (run, other)]
    return ratio_row(run.key(of(metric, other.scheme), average, traffic), *both)

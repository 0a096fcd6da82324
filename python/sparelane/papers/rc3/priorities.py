"""Measures strict priority in a queue of the kernel that two flows share: NSDI 2014, Figs. 16 and 17.

One flow has high priority, and the other one low priority. Which of them starts first is the difference between two
cases. Files of this kind name the place of the queue.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import polars as pl
from matplotlib.figure import Figure

from sparelane.papers.engine.base import Effort, Experiment, Outcome
from sparelane.papers.engine.cells import Cell, Runs
from sparelane.papers.engine.declared import Declaration, named
from sparelane.papers.engine.rows import Evaluation, Key, Metric, MissingNumberError, Row
from sparelane.papers.rc3 import harm
from sparelane.papers.rc3.kernel import OFFLOAD, SCENARIO, workload
from sparelane.reports import plots

THROUGHPUT = Metric("throughput", "Gb/s")
METRICS = named(THROUGHPUT, harm.HARM, harm.BESIDE)
HIGH, LOW = "high priority", "low priority"
LOOKS = {HIGH: plots.RC3, LOW: plots.TCP}
# In the first phase, one flow has the path alone; in the second phase, both want it. The flow of high priority then
# ends, and the other one has the third phase alone. Throughput is measured in steps.
PHASE_MS, STEP_MS = 100, 10
END_MS = 3 * PHASE_MS
ENDS_MS = range(STEP_MS, END_MS + 1, STEP_MS)
# The first steps of a phase do not count in claims: slow start begins, and queues still hold packets.
SETTLES_MS = 30
RATES_GBPS = {"full": 10, "quick": 1}
# The share of a link's rate that can be payload: 1460 of 1500 bytes.
SHARE = 1460 / 1500
# The cases, with the start of each flow in milliseconds; the flow that starts first comes first.
CASES: Mapping[str, Mapping[str, int]] = {
    "(a) low priority starts after high": {HIGH: 0, LOW: PHASE_MS},
    "(b) high priority starts after low": {LOW: 0, HIGH: PHASE_MS},
}


@dataclass(frozen=True, slots=True)
class Place:
    """The place of the queue that both flows share.

    Attributes:
        pairs: the source and the destination of each flow.
        settings: overrides that make the place the bottleneck. `{rate}` stands for the rate in Gb/s, and `{more}` for
            four times that.
    """

    pairs: Mapping[str, tuple[str, ...]]
    settings: tuple[str, ...]

    def cell(self, case: str, effort: Effort) -> Cell:
        """Returns the run of a case."""
        starts_ms, rate_gbps = CASES[case], RATES_GBPS[effort.name]
        # The flow of high priority is as long as its two phases, or its one.
        high_bytes = round(SHARE * rate_gbps * 1e9 / 8 * (2 * PHASE_MS - starts_ms[HIGH]) / 1e3)
        flows = (
            (scheme, self.pairs[name], size, starts_ms[name])
            for name, scheme, size in ((HIGH, "tcp", f"{high_bytes}B"), (LOW, "low", "unlimited"))
        )
        return Cell(
            SCENARIO,
            (
                *OFFLOAD,
                *(setting.format(rate=rate_gbps, more=4 * rate_gbps) for setting in self.settings),
                "topology.pairs=2",
                "topology.access_delay=20us",
                "topology.bottleneck_delay=60us",
                "scheme.tcp.controller=cubic",
                "scheme.low.controller=cubic",
                workload(flows),
                f"duration={END_MS}ms",
                f"sample={{ interval = '{STEP_MS}ms', flows = [0, 1] }}",
            ),
            cost=5.0 * rate_gbps,
            on="linux",
            most_seeds=1,
            setting=case,
        )


def _rows(case: str, outcome: Outcome) -> Iterable[Row]:
    """Yields the throughput of each flow in each step."""
    # Flows are numbered in the order of their starts.
    for number, name in enumerate(CASES[case]):
        chosen = (pl.col("probe") == f"flow {number}") & (pl.col("quantity") == "delivered_bytes")
        sampled = outcome.series.filter(chosen)
        sampled_ms = (1e3 * sampled["time_s"]).round().cast(pl.Int64).to_list()
        totals = dict(zip(sampled_ms, sampled["value"].to_list(), strict=True))
        whole = float(outcome.flows["delivered_bytes"][number])
        last_ms, before = max(totals, default=0), 0.0
        for end_ms in ENDS_MS:
            # There are no samples before a flow starts and after it ends.
            total = totals.get(end_ms, before if end_ms <= last_ms else whole)
            yield Row(_key(case, name, end_ms), None, 8e-9 * (total - before) / (STEP_MS / 1e3))
            before = total


def _key(case: str, name: str, end_ms: int) -> Key:
    return Key(case, THROUGHPUT, name, traffic=f"{end_ms - STEP_MS} to {end_ms} ms")


def _mean(evaluation: Evaluation, case: str, name: str, phase: int) -> float:
    """Returns the mean throughput of a flow in a phase, 0 to 2, without the phase's first steps."""
    ends_ms = range(phase * PHASE_MS + SETTLES_MS + STEP_MS, (phase + 1) * PHASE_MS, STEP_MS)
    return sum(evaluation.ours(_key(case, name, end_ms)) for end_ms in ends_ms) / len(ends_ms)


def _share(case: str, phase: int) -> Callable[[Evaluation], float]:
    """Returns a value of claims: the high priority's share of the throughput of both flows in a phase."""

    def share(evaluation: Evaluation) -> float:
        high, low = (_mean(evaluation, case, name, phase) for name in (HIGH, LOW))
        if not high + low:
            raise MissingNumberError("nothing was delivered")
        return high / (high + low)

    return share


def _beside_over_alone(case: str) -> Callable[[Evaluation], float]:
    """Returns a value of claims: the high priority's throughput next to the other flow over its throughput alone."""
    alone = next(iter(CASES))
    return lambda found: _mean(found, case, HIGH, 1) / max(_mean(found, alone, HIGH, 0), 1e-9)


VALUES = {"share of high priority": _share, "throughput beside over alone": _beside_over_alone}


def draw(evaluation: Evaluation) -> Figure:
    """Draws the throughput over time, a panel for each case."""
    drawing, panels = plots.figure(len(CASES), width_inches=plots.PAGE_INCHES)
    for axes, case in zip(panels, CASES, strict=True):
        for name, look in LOOKS.items():
            rates = [evaluation.find(_key(case, name, end_ms)).value or 0.0 for end_ms in ENDS_MS]
            plots.line(axes, name, look, [end_ms - STEP_MS / 2 for end_ms in ENDS_MS], rates)
        axes.set_ylim(bottom=0.0)
        axes.set_xlabel(f"{case}: time (ms)")
        axes.set_ylabel("throughput (Gb/s)")
        plots.legend_above(axes, 2)
    return drawing


def experiment(declared: Declaration) -> Experiment:
    """Returns the experiment that a file of this kind declares; `harm = true` adds the harm of a flow under RC3.

    Raises:
        DeclarationError: a key is wrong.
    """
    rest = declared.rest
    place = Place({HIGH: rest.texts("high"), LOW: rest.texts("low")}, rest.texts("settings"))
    has_harm = rest.flag("harm")
    rest.finish()

    def cells(effort: Effort) -> Iterable[Cell]:
        return (*(place.cell(case, effort) for case in CASES), *(harm.cells(effort) if has_harm else ()))

    def evaluate(runs: Runs) -> Evaluation:
        rate = f"The link has {RATES_GBPS[runs.effort.name]} Gb/s, of which {100 * SHARE:.1f} % can be payload."
        rows = [row for case in CASES for row in _rows(case, runs.of(place.cell(case, runs.effort))[0])]
        return Evaluation((*rows, *(harm.rows(runs) if has_harm else ())), (rate,))

    return declared.study(cells, evaluate, draw)

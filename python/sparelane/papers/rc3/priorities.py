"""Two flows of different priority over one queue of the kernel, one after the other has begun: Figs. 16 and 17."""

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
from sparelane.papers.rc3.kernel import OFFLOAD, SCENARIO
from sparelane.reports import plots

THROUGHPUT = Metric("throughput", "Gb/s")
HIGH, LOW = "high priority", "low priority"
LOOKS = {HIGH: plots.RC3, LOW: plots.TCP}
# The first flow has the path alone for so long, then both want it, and then the low one has it alone: milliseconds.
PHASE_MS, STEP_MS = 100, 10
END_MS = 3 * PHASE_MS
RATES_GBPS = {"full": 10, "quick": 1}
# What the fair share of a full link leaves for payload: 1460 of 1500 bytes.
SHARE = 1460 / 1500


@dataclass(frozen=True, slots=True)
class Case:
    """Which flow begins.

    Attributes:
        name: how rows call it.
        starts_ms: of each flow.
    """

    name: str
    starts_ms: Mapping[str, int]


CASES = (
    Case("(a) low priority starts after high", {HIGH: 0, LOW: PHASE_MS}),
    Case("(b) high priority starts after low", {LOW: 0, HIGH: PHASE_MS}),
)


@dataclass(frozen=True, slots=True)
class PriorityFigure:
    """The two figures' experiment, for one place of the queue that both flows share.

    Attributes:
        title: of the experiment, for the labels of its runs.
        pairs: source and target of each flow.
        settings: overrides that make the place the narrowest; `{rate}` stands for the rate in Gb/s, `{more}` for four
            times that.
        harm: also measures what a flow loses to another one under RC3.
    """

    title: str
    pairs: Mapping[str, tuple[str, str]]
    settings: tuple[str, ...]
    harm: bool

    def cell(self, case: Case, effort: Effort) -> Cell:
        """Returns the run of one case."""
        rate_gbps = RATES_GBPS[effort.name]
        # The high flow is done when its two phases, or its one, are over.
        high_ms = 2 * PHASE_MS - case.starts_ms[HIGH]
        size_bytes = round(SHARE * rate_gbps * 1e9 / 8 * high_ms / 1e3)
        flows = ", ".join(
            f"{{ kind = 'bulk', scheme = '{scheme}', pairs = [['{source}', '{target}']], size = {size}, "
            f"start = '{case.starts_ms[name]}ms' }}"
            for name, scheme, size in ((HIGH, "tcp", f"'{size_bytes}B'"), (LOW, "low", "'unlimited'"))
            for source, target in (self.pairs[name],)
        )
        return Cell(
            scenario=SCENARIO,
            settings=(
                *OFFLOAD,
                *(setting.format(rate=rate_gbps, more=4 * rate_gbps) for setting in self.settings),
                "topology.pairs=2",
                "topology.access_delay=20us",
                "topology.bottleneck_delay=60us",
                "scheme.tcp.controller=cubic",
                "scheme.low.controller=cubic",
                f"workload=[{flows}]",
                f"duration={END_MS}ms",
                f"sample={{ interval = '{STEP_MS}ms', flows = [0, 1] }}",
            ),
            on="linux",
            is_random=False,
            label=f"{self.title} {case.name}",
            cost=5.0 * rate_gbps,
        )

    def cells(self, effort: Effort) -> Iterable[Cell]:
        """Yields the figure's runs, and those of the harm."""
        yield from (self.cell(case, effort) for case in CASES)
        if self.harm:
            yield from harm.cells(effort)

    def evaluate(self, runs: Runs) -> Evaluation:
        """Returns each flow's throughput over time, and the harm."""
        rate = f"The link has {RATES_GBPS[runs.effort.name]} Gb/s, of which {100 * SHARE:.1f} % can be payload."
        rows = [row for case in CASES for row in _rows(case, runs.of(self.cell(case, runs.effort))[0])]
        return Evaluation((*rows, *(harm.rows(runs) if self.harm else ())), (rate,))


def _names(case: Case) -> list[str]:
    """The flows by their numbers: in order of start."""
    return sorted(case.starts_ms, key=lambda name: case.starts_ms[name])


def _rows(case: Case, outcome: Outcome) -> Iterable[Row]:
    """What each flow delivers in each step of time."""
    for number, name in enumerate(_names(case)):
        chosen = (pl.col("probe") == f"flow {number}") & (pl.col("quantity") == "delivered_bytes")
        sampled = outcome.series.filter(chosen)
        ends_ms = (1e3 * sampled["time_s"]).round().cast(pl.Int64).to_list()
        totals = dict(zip(ends_ms, sampled["value"].to_list(), strict=True))
        whole = int(outcome.flows["delivered_bytes"][number])
        last = max(totals, default=0)
        before = 0.0
        for end_ms in range(STEP_MS, END_MS + 1, STEP_MS):
            # A flow that is over is sampled no more; one that has not begun, not yet.
            total = totals.get(end_ms, before if end_ms <= last else float(whole))
            yield Row(_key(case, name, end_ms), None, 8e-9 * (total - before) / (STEP_MS / 1e3))
            before = total


def _key(case: Case, name: str, end_ms: int) -> Key:
    return Key(case.name, THROUGHPUT, name, traffic=f"{end_ms - STEP_MS} to {end_ms} ms")


# In each phase the first steps are left out: the flow that begins is in slow start, and what is queued goes first.
SETTLES_MS = 30


def _mean(case: Case, name: str, phase: int) -> Callable[[Evaluation], float]:
    """The mean throughput of a flow in a phase, 0 to 2, once that has settled."""
    ends = range(phase * PHASE_MS + SETTLES_MS + STEP_MS, (phase + 1) * PHASE_MS, STEP_MS)

    def found(evaluation: Evaluation) -> float:
        return sum(evaluation.ours(_key(case, name, end_ms)) for end_ms in ends) / len(ends)

    return found


def _share(case: Case, name: str, phase: int) -> Callable[[Evaluation], float]:
    """The same, as a share of what both flows have then."""

    def found(evaluation: Evaluation) -> float:
        parts = {one: _mean(case, one, phase)(evaluation) for one in (HIGH, LOW)}
        if not sum(parts.values()):
            raise MissingNumberError("nothing was delivered")
        return parts[name] / sum(parts.values())

    return found


def _beside_over_alone(case: Case) -> Callable[[Evaluation], float]:
    """The throughput of the flow of high priority beside the other one, over what it has alone."""
    beside, alone = _mean(case, HIGH, 1), _mean(CASES[0], HIGH, 0)
    return lambda evaluation: beside(evaluation) / max(alone(evaluation), 1e-9)


def draw(evaluation: Evaluation) -> Figure:
    """Throughput over time, a panel for each case."""
    drawing, panels = plots.figure(len(CASES), width_inches=plots.PAGE_INCHES)
    ends = range(STEP_MS, END_MS + 1, STEP_MS)
    for axes, case in zip(panels, CASES, strict=True):
        for name, look in LOOKS.items():
            rates = [evaluation.find(_key(case, name, end_ms)).value or 0.0 for end_ms in ends]
            plots.line(axes, name, look, [end_ms - STEP_MS / 2 for end_ms in ends], rates)
        axes.set_ylim(bottom=0.0)
        axes.set_xlabel(f"{case.name}: time (ms)")
        axes.set_ylabel("throughput (Gb/s)")
        plots.legend_above(axes, 2)
    return drawing


BY_NAME = {case.name: case for case in CASES}
METRICS = named(THROUGHPUT, harm.HARM, harm.BESIDE)
VALUES = {
    "share of both": lambda case, name, phase: _share(BY_NAME[case], name, phase),
    "throughput beside over alone": lambda case: _beside_over_alone(BY_NAME[case]),
}


def experiment(declared: Declaration) -> Experiment:
    """Returns the experiment that a file of this kind declares.

    Raises:
        DeclarationError: a key is wrong.
    """
    rest = declared.rest
    high, low = (rest.texts(key) for key in ("high", "low"))
    found = PriorityFigure(
        declared.title, {HIGH: (high[0], high[1]), LOW: (low[0], low[1])}, rest.texts("settings"), rest.flag("harm")
    )
    rest.finish()
    return declared.study(found.cells, found.evaluate, draw)

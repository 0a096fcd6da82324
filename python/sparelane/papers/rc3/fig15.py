"""NSDI 2014, Fig. 15, on the kernel: completion times by size, around New Reno and CUBIC, with and without offload."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from matplotlib.figure import Figure

from sparelane.papers.engine.base import Effort, Experiment, Outcomes, Simulation
from sparelane.papers.engine.claims import Value
from sparelane.papers.engine.declared import Declaration, named
from sparelane.papers.engine.rows import Evaluation, Key, MissingNumberError, Row, joined
from sparelane.papers.rc3.analytic import reduction
from sparelane.papers.rc3.internet2 import FCT, RC3, REDUCTION, TCP
from sparelane.papers.rc3.kernel import INNER, OFFLOADS, RATES, SIZES, Run, flow
from sparelane.reports import plots

SMALL, LARGE = (1, 5, 10), (100, 500, 1000)
QUICK_SIZES = (1, 10, 100, 1000)
SIMULATED = "simulated"
NAMES: dict[Literal["tcp", "rc3"], str] = {"tcp": TCP, "rc3": RC3}


def _points(effort: Effort) -> list[Run]:
    """The runs under TCP; each has its like under RC3."""
    is_quick = effort.name == "quick"
    sizes = QUICK_SIZES if is_quick else SIZES
    inners = list(INNER)[: 1 if is_quick else None]
    offloads = ["no offload", "TSO and GRO"] if is_quick else list(OFFLOADS)
    ways: list[tuple[str, Literal["simulator", "linux"]]] = [(offload, "linux") for offload in offloads]
    ways.append(("no offload", "simulator"))
    return [
        Run(rate, inner, offload, "tcp", packets, on)
        for rate in RATES
        for inner in inners
        for offload, on in ways
        for packets in sizes
    ]


def plan(effort: Effort) -> Sequence[Simulation]:
    """Each point under both schemes."""
    return [run.under(scheme).simulation() for run in _points(effort) for scheme in NAMES]


def _key(run: Run, scheme: Literal["tcp", "rc3"], *, is_reduction: bool = False) -> Key:
    way = run.offload if run.on == "linux" else SIMULATED
    metric = REDUCTION if is_reduction else FCT
    return Key(run.rate, metric, NAMES[scheme], traffic=flow(run.packets), variant=joined(run.inner, way))


def evaluate(effort: Effort, outcomes: Outcomes) -> Evaluation:
    """Completion times, and what RC3 takes off."""
    return Evaluation(tuple(row for run in _points(effort) for row in _rows(run, outcomes)))


def _rows(run: Run, outcomes: Outcomes) -> Iterable[Row]:
    times: dict[str, float | None] = {}
    for scheme in NAMES:
        times[scheme] = outcomes[run.under(scheme).simulation()].flows["completion_s"].item()
        yield Row(_key(run, scheme), None, times[scheme])
    tcp_s, rc3_s = times["tcp"], times["rc3"]
    cut = None if tcp_s is None or rc3_s is None else reduction(tcp_s, rc3_s)
    yield Row(_key(run, "rc3", is_reduction=True), None, cut)


def _cuts(evaluation: Evaluation, sizes: Sequence[int], rate: str) -> list[float]:
    """RC3's reductions on the kernel, of all controllers and offloads."""
    flows = {flow(packets) for packets in sizes}
    rows = [row for row in evaluation.rows if row.key.metric == REDUCTION and row.key.traffic in flows]
    cuts = [row.value for row in rows if row.key.setting == rate and SIMULATED not in row.key.variant]
    if not cuts or None in cuts:
        raise MissingNumberError(f"a reduction at {rate}")
    return [cut for cut in cuts if cut is not None]


def _largest_change(rate: str) -> Value:
    """How far a small flow is from its time under TCP, percent."""
    return lambda evaluation: max(abs(cut) for cut in _cuts(evaluation, SMALL, rate))


def _least_cut(rate: str) -> Value:
    """What a large flow saves at least, percent."""
    return lambda evaluation: min(_cuts(evaluation, LARGE, rate))


def draw(evaluation: Evaluation) -> Figure:
    """The reduction against size, one panel a rate; offload in one look, controllers in others."""
    drawing, panels = plots.figure(len(RATES), width_inches=plots.PAGE_INCHES)
    shown = (
        ("New Reno, Linux", "New Reno, no offload", plots.RC3),
        ("with TSO and GRO", "New Reno, TSO and GRO", plots.FIFTH),
        ("CUBIC, Linux", "CUBIC, no offload", plots.FOURTH),
        ("New Reno, simulated", f"New Reno, {SIMULATED}", plots.THIRD),
    )
    for axes, rate in zip(panels, RATES, strict=True):
        for label, variant, look in shown:
            rows = {
                row.key.traffic: row
                for row in evaluation.rows
                if (row.key.setting, row.key.metric, row.key.variant) == (rate, REDUCTION, variant)
            }
            sizes = [packets for packets in SIZES if flow(packets) in rows]
            plots.points(axes, label, look, sizes, [rows[flow(packets)] for packets in sizes])
        axes.set_xscale("log")
        axes.set_ylim(-5, 100)
        axes.set_xlabel(f"flow size at {rate} (packets)")
        axes.set_ylabel("reduction of the time (%)")
        plots.legend_above(axes, 2)
    return drawing


METRICS = named(FCT, REDUCTION)
VALUES = {"largest change of small flows": _largest_change, "least cut of large flows": _least_cut}


def experiment(declared: Declaration) -> Experiment:
    """Returns the experiment that the file declares."""
    return declared.experiment(plan, evaluate, draw)

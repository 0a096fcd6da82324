"""NSDI 2014, Fig. 18, on the kernel: one flow with segmentation and receive offload, each on and off."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from matplotlib.figure import Figure

from sparelane.papers.engine.base import Effort, Experiment, Outcomes, Simulation
from sparelane.papers.engine.declared import Declaration, named
from sparelane.papers.engine.rows import Evaluation, Key, Metric, Row
from sparelane.papers.rc3.internet2 import FCT, RC3, TCP
from sparelane.papers.rc3.kernel import OFFLOADS, Run, flow, handed_over, sent_together
from sparelane.reports import plots

PACKETS = 1000
RATE, INNER = "10 Gb/s", "New Reno"
# The paper leaves out the time that setting up the connection takes: a round trip, seconds.
SET_UP_S = 0.020
BATCH = Metric("packets sent as one, on average", "packets")
HANDED = Metric("packets handed to the receiver's TCP", "packets")
OVERHEAD = Metric("reduction of the overhead of processing packets", "%")
SCHEMES: dict[Literal["tcp", "rc3"], str] = {"tcp": TCP, "rc3": RC3}
COST = Key("TSO and GRO", OVERHEAD, RC3)


def _run(offload: str, scheme: Literal["tcp", "rc3"]) -> Run:
    return Run(RATE, INNER, offload, scheme, PACKETS)


def plan(effort: Effort) -> Sequence[Simulation]:
    """Each offload under both schemes."""
    del effort
    return [_run(offload, scheme).simulation() for offload in OFFLOADS for scheme in SCHEMES]


def evaluate(effort: Effort, outcomes: Outcomes) -> Evaluation:
    """Completion times, and how many packets went and came as one."""
    del effort
    rows = [row for offload in OFFLOADS for scheme in SCHEMES for row in _rows(offload, scheme, outcomes)]
    return Evaluation((*rows, Row(COST, 50.0, None)))


def _rows(offload: str, scheme: Literal["tcp", "rc3"], outcomes: Outcomes) -> Iterable[Row]:
    outcome, name = outcomes[_run(offload, scheme).simulation()], SCHEMES[scheme]
    whole_s: float | None = outcome.flows["completion_s"].item()
    yield Row(Key(offload, FCT, name), None, None if whole_s is None else whole_s - SET_UP_S)
    yield Row(Key(offload, BATCH, name), None, sent_together(outcome))
    yield Row(Key(offload, HANDED, name), None, handed_over(outcome))


def draw(evaluation: Evaluation) -> Figure:
    """Completion times, and what the receiver is handed."""
    drawing, panels = plots.figure(2, width_inches=1.3 * plots.PAGE_INCHES)
    looks = {TCP: plots.TCP, RC3: plots.RC3}
    labels = {FCT: "completion time (s)", HANDED: "packets handed over"}
    for axes, (metric, label) in zip(panels, labels.items(), strict=True):
        bars = [
            plots.Bars.of_rows(name, look, [evaluation.find(Key(offload, metric, name)) for offload in OFFLOADS])
            for name, look in looks.items()
        ]
        plots.grouped_bars(axes, list(OFFLOADS), bars)
        axes.set_xlabel(f"{flow(PACKETS)} at {RATE}")
        axes.set_ylabel(label)
        plots.legend_above(axes, 2)
    return drawing


METRICS = named(FCT, HANDED, BATCH, OVERHEAD)


def experiment(declared: Declaration) -> Experiment:
    """Returns the experiment that the file declares."""
    return declared.experiment(plan, evaluate, draw)

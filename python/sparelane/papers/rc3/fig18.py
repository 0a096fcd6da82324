"""NSDI 2014, Fig. 18, on the kernel: one flow with segmentation and receive offload, each on and off."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from matplotlib.figure import Figure

from sparelane.papers.engine.base import Claim, Effort, Experiment, Outcomes, Simulation
from sparelane.papers.engine.claims import at_least, at_most, ours, ratio
from sparelane.papers.engine.rows import Evaluation, Key, Metric, Row
from sparelane.papers.rc3.internet2 import FCT, RC3, TCP
from sparelane.papers.rc3.kernel import ASSUMPTIONS, OFFLOADS, Run, flow, handed_over, sent_together
from sparelane.reports import plots

PACKETS = 1000
RATE, INNER = "10 Gb/s", "New Reno"
# The paper leaves out the time that setting up the connection takes: a round trip, seconds.
SET_UP_S = 0.020
BATCH = Metric("packets sent as one, on average", "packets")
HANDED = Metric("packets handed to the receiver's TCP", "packets")
OVERHEAD = Metric("reduction of the overhead of processing packets", "%")
SCHEMES: dict[Literal["tcp", "rc3"], str] = {"tcp": TCP, "rc3": RC3}
BOTH, NEITHER = "TSO and GRO", "no offload"
COST = Key(BOTH, OVERHEAD, RC3)


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


def _time(offload: str, name: str) -> Key:
    return Key(offload, FCT, name)


CLAIMS = (
    *(
        Claim(
            f"{offload} costs RC3 no time (section 5.2, Fig. 18)",
            ratio(_time(offload, RC3), _time(NEITHER, RC3)),
            full=at_most(1.02),
            quick=at_most(1.02),
        )
        for offload in list(OFFLOADS)[1:]
    ),
    Claim(
        "The receiver is handed half as many packets under RC3 with both, or fewer, as the paper's overhead falls by "
        "almost half (section 5.2)",
        ratio(Key(BOTH, HANDED, RC3), Key(NEITHER, HANDED, RC3)),
        full=at_most(0.5),
        quick=at_most(0.5),
    ),
    Claim(
        "The tail goes in batches under TSO (section 4.2.3)",
        ours(Key(BOTH, BATCH, RC3)),
        full=at_least(5.0),
        quick=at_least(5.0),
    ),
)


EXPERIMENT = Experiment(
    id="rc3/fig18",
    title="Segmentation and receive offload in the Linux kernel",
    source="Mittal et al., NSDI 2014, sections 4.2.3 and 5.2, Fig. 18",
    method="One flow of 1000 packets at 10 Gb/s and 20 ms, without TSO and LRO, with each, and with both; completion "
    "times without the connection's set-up.",
    assumptions=(
        *ASSUMPTIONS,
        "GRO stands for the paper's LRO, which it has replaced in the kernel.",
        "The paper's TCP loses time by TSO and by LRO, as an acknowledgment of many packets opened the window by two. "
        "Kernels since 4.1 count all that is acknowledged, so that no such loss is to be seen here.",
    ),
    full=Effort("full", seeds=1),
    quick=Effort("quick", seeds=1),
    plan=plan,
    evaluate=evaluate,
    draw=draw,
    claims=CLAIMS,
    reasons={COST: "not measurable in virtual time, which models no cost of processors"},
    needs_kernel="rc3",
)

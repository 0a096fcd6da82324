"""RTCP, section V-C2 and Fig. 11b: 95 servers send to one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from sparelane.experiments import plots
from sparelane.experiments.base import Effort, Evaluation, Experiment, Outcomes, Simulation
from sparelane.experiments.rtcp import datacentre, scheme_figure
from sparelane.experiments.rtcp.datacentre import Printed, Run
from sparelane.experiments.rtcp.statements import INCAST, INCAST_RTCP

RUNS: Mapping[str, Run] = {
    scheme: Run(scheme, INCAST_RTCP if scheme == "RTCP" else (), "95 to 1", INCAST)
    for scheme in ("DCTCP", "LEDBAT", "Vegas", "TIMELY", "RTCP")
}
CONTROLS = datacentre.controls(RUNS["RTCP"])

ASSUMPTIONS = (
    *datacentre.ASSUMPTIONS,
    "All 95 other servers send to the first one without end, each from a moment within the first millisecond that is "
    "drawn with the seed. RTCP has alpha = 5000 and an initial window of 2, as the paper says; the others start with "
    "10, and LEDBAT with 2 by its RFC. Runs of 3 s, since a loss of a whole first window costs a second.",
    "LEDBAT measures one-way delays exactly, with its target of 100 ms, a thousand times what these queues hold.",
)


ONE_EACH = (
    "95 flows of one segment each nearly fill a queue of 100 packets, below which no window can go: a delay-based "
    "scheme can hardly be shorter. The paper does not give the length of its queue"
)
REASONS = {("RTCP", f"99th delay, of {other}'s"): ONE_EACH for other in ("LEDBAT", "Vegas")}


def plan(effort: Effort) -> Sequence[Simulation]:
    """The five schemes, and what RTCP must be told from."""
    return datacentre.plan([*RUNS.values(), *CONTROLS.values()], effort)


def evaluate(effort: Effort, outcomes: Outcomes) -> Evaluation:
    """Throughput and delay, and RTCP's tail in percent of the others'."""
    rows = [
        row for scheme, run in RUNS.items() for row in datacentre.scheme_rows(scheme, run, Printed(), effort, outcomes)
    ]
    tails = {
        scheme: [datacentre.quantile_us(o, 0.99) for o in run.outcomes(effort, outcomes)]
        for scheme, run in RUNS.items()
    }
    of = (
        ("LEDBAT", "", 56.0),
        ("Vegas", "", 56.0),
        ("TIMELY", " (paper: below 56)", None),
        ("DCTCP", " (paper: above 100)", None),
    )
    for other, paper, printed in of:
        rows.append(
            datacentre.ratio_row("RTCP", f"99th delay, of {other}'s{paper}", printed, tails["RTCP"], tails[other])
        )
    for name, run in CONTROLS.items():
        rows.extend(datacentre.scheme_rows(name, run, Printed(), effort, outcomes))
    curves = {scheme: datacentre.distribution(run.outcomes(effort, outcomes)) for scheme, run in RUNS.items()}
    return Evaluation(tuple(rows), curves=curves)


def draw(evaluation: Evaluation) -> Figure:
    """The distributions of delay."""
    drawing, [axes] = plots.figure()
    scheme_figure.draw_delays(axes, evaluation, scheme_figure.looks_of(list(RUNS)))
    return drawing


EXPERIMENT = Experiment(
    id="rtcp/incast-95",
    title="95 servers send to one",
    source="RTCP, section V-C2 and Fig. 11b",
    method="Incast from 95 servers of the spine-leaf network to one, under schemes that read round-trip times, and "
    "DCTCP, in ns-3.",
    assumptions=ASSUMPTIONS,
    full=Effort("full", seeds=10, stop_s=3.0),
    quick=Effort("quick", seeds=1, stop_s=2.0),
    plan=plan,
    evaluate=evaluate,
    draw=draw,
    reasons=REASONS,
)

"""RTCP, section V-C1, Table I (OS) and Fig. 11a: random sending where links between switches are half as fast."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from sparelane.experiments import plots
from sparelane.experiments.base import Effort, Evaluation, Experiment, Outcomes, Simulation
from sparelane.experiments.rtcp import datacentre, scheme_figure
from sparelane.experiments.rtcp.datacentre import Printed, Run
from sparelane.experiments.rtcp.random_sending import BBR, BOUND, QUEUES, TIMELY

HALF = ("topology.over_subscription=2",)

PRINTED: Mapping[str, Printed] = {
    "NewReno": Printed(2753.2, 129.9),
    "DCTCP": Printed(2528.9, 56.6),
    "BBR": Printed(2418.56, 113.6),
    "TIMELY": Printed(2839.13, 156.8),
    "RTCP": Printed(2787.08, 23.4),
}

BASE = {
    scheme: Run(scheme, (*HALF, "scheme.rtcp.alpha=1000") if scheme == "RTCP" else HALF, "half the core")
    for scheme in PRINTED
}

ASSUMPTIONS = (
    *datacentre.ASSUMPTIONS,
    "As random sending, with 20 Gb/s between leaves and spines, and alpha = 1000 for RTCP, as the paper says.",
)


REASONS = {
    **{("TIMELY", metric): TIMELY for metric in ("throughput", "mean delay")},
    ("RTCP", "mean delay, of TIMELY's"): TIMELY,
    ("BBR", "mean delay"): BBR,
    **{("NewReno", metric): QUEUES for metric in ("throughput", "mean delay")},
    ("RTCP", "throughput"): BOUND,
}


def plan(effort: Effort) -> Sequence[Simulation]:
    """All schemes."""
    return datacentre.plan(list(BASE.values()), effort)


def evaluate(effort: Effort, outcomes: Outcomes) -> Evaluation:
    """Table I's columns OS, and what the text says of them."""
    rows = [
        row
        for scheme, run in BASE.items()
        for row in datacentre.scheme_rows(scheme, run, PRINTED[scheme], effort, outcomes)
    ]
    means = {scheme: [datacentre.mean_us(o) for o in run.outcomes(effort, outcomes)] for scheme, run in BASE.items()}
    rows.append(datacentre.ratio_row("RTCP", "mean delay, of TIMELY's", 14.92, means["RTCP"], means["TIMELY"]))
    curves = {scheme: datacentre.distribution(run.outcomes(effort, outcomes)) for scheme, run in BASE.items()}
    return Evaluation(tuple(rows), curves=curves)


def draw(evaluation: Evaluation) -> Figure:
    """Throughput and delay of the five schemes, and the distributions of delay."""
    drawing, panels = plots.figure(2, width_inches=plots.PAGE_INCHES)
    scheme_figure.draw_schemes(panels, evaluation, list(BASE))
    return drawing


EXPERIMENT = Experiment(
    id="rtcp/over-subscription",
    title="Over-subscription: throughput and delay of five schemes",
    source="RTCP, section V-C1, Table I (OS) and Fig. 11a",
    method="Random sending with half the capacity between leaves and spines, in ns-3.",
    assumptions=ASSUMPTIONS,
    full=Effort("full", seeds=10, stop_s=0.05),
    quick=Effort("quick", seeds=1, stop_s=0.01),
    plan=plan,
    evaluate=evaluate,
    draw=draw,
    reasons=REASONS,
)

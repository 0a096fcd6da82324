"""RTCP, section V-C1, Table I (OS) and Fig. 11a: random sending where links between switches are half as fast."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from sparelane.experiments import plots
from sparelane.experiments.base import Effort, Evaluation, Experiment, Outcomes, Row, Simulation
from sparelane.experiments.rtcp import datacentre, scheme_figure
from sparelane.experiments.rtcp.datacentre import Printed, Run
from sparelane.experiments.rtcp.random_sending import BBR, BOUND, QUEUES, TIMELY
from sparelane.experiments.rtcp.statements import HALF, OVER_SUBSCRIPTION

BASE = {
    scheme: Run(scheme, (*HALF, "scheme.rtcp.alpha=1000") if scheme == "RTCP" else HALF, "half the core")
    for scheme in OVER_SUBSCRIPTION
}
CONTROLS = datacentre.controls(BASE["RTCP"])

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
    """All schemes, and what RTCP must be told from."""
    return datacentre.plan([*BASE.values(), *CONTROLS.values()], effort)


def evaluate(effort: Effort, outcomes: Outcomes) -> Evaluation:
    """Table I's columns OS, and what the text says of them."""
    rows: list[Row] = []
    for scheme, run in BASE.items():
        rows.extend(datacentre.scheme_rows(scheme, run, OVER_SUBSCRIPTION[scheme], effort, outcomes))
    found = {scheme: run.outcomes(effort, outcomes) for scheme, run in BASE.items()}
    rates = {scheme: [datacentre.throughput_mbps(o, effort.stop_s) for o in all] for scheme, all in found.items()}
    means = {scheme: [datacentre.mean_us(o) for o in all] for scheme, all in found.items()}
    tails = {scheme: [datacentre.quantile_us(o, 0.99) for o in all] for scheme, all in found.items()}
    ratio = datacentre.ratio_row
    rows.append(ratio("RTCP", "throughput, of TIMELY's", 98.17, rates["RTCP"], rates["TIMELY"]))
    rows.append(ratio("RTCP", "mean delay, of TIMELY's", 14.92, means["RTCP"], means["TIMELY"]))
    for other in ("DCTCP", "NewReno", "TIMELY", "BBR"):
        rows.append(ratio("RTCP", f"99th delay, of {other}'s (paper: below 100)", None, tails["RTCP"], tails[other]))
    for name, run in CONTROLS.items():
        rows.extend(datacentre.scheme_rows(name, run, Printed(), effort, outcomes))
    return Evaluation(tuple(rows), curves={scheme: datacentre.distribution(all) for scheme, all in found.items()})


def draw(evaluation: Evaluation) -> Figure:
    """Throughput and delay of the five schemes, and the distributions of delay."""
    drawing, panels = plots.figure(2, width_inches=plots.PAGE_INCHES)
    scheme_figure.draw_schemes(panels, evaluation, scheme_figure.looks_of(list(BASE)))
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

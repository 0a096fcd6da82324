"""RTCP, section V-C1, Table I (OS) and Fig. 11a: random sending where links between switches are half as fast."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from sparelane.papers.engine.base import Effort, Experiment, Outcomes, Simulation
from sparelane.papers.engine.claims import at_most
from sparelane.papers.engine.declared import Declaration, named
from sparelane.papers.engine.rows import Evaluation, Row
from sparelane.papers.rtcp import datacentre, scheme_figure
from sparelane.papers.rtcp.datacentre import DELAY, LOOKS, MEAN, TAIL, THROUGHPUT, Printed, Run, of, ratio_row
from sparelane.papers.rtcp.statements import HALF, OVER_SUBSCRIPTION
from sparelane.reports import plots

BASE = {
    scheme: Run(scheme, (*HALF, "scheme.rtcp.alpha=1000") if scheme == "RTCP" else HALF, "over-subscription")
    for scheme in OVER_SUBSCRIPTION
}
CONTROLS = datacentre.controls(BASE["RTCP"])
ONE_PATH = [run.varied("one path between two leaves", "routing=single-path") for run in BASE.values()]
RTCP = BASE["RTCP"]


def plan(effort: Effort) -> Sequence[Simulation]:
    """All schemes, and what RTCP must be told from."""
    return datacentre.plan([*BASE.values(), *CONTROLS, *ONE_PATH], effort)


def evaluate(effort: Effort, outcomes: Outcomes) -> Evaluation:
    """Table I's columns OS, and what the text says of them."""
    rows: list[Row] = []
    for scheme, run in BASE.items():
        rows.extend(datacentre.scheme_rows(run, OVER_SUBSCRIPTION[scheme], effort, outcomes))
    found = {scheme: datacentre.numbers(run, effort, outcomes) for scheme, run in BASE.items()}
    rtcp, timely = found["RTCP"], found["TIMELY"]
    rows.append(ratio_row(RTCP.key(of(THROUGHPUT, "TIMELY")), rtcp.mbps, timely.mbps, 98.17))
    rows.append(ratio_row(RTCP.key(of(DELAY, "TIMELY"), MEAN), rtcp.mean_us, timely.mean_us, 14.92))
    for other in ("DCTCP", "NewReno", "TIMELY", "BBR"):
        key = RTCP.key(of(DELAY, other), TAIL)
        rows.append(ratio_row(key, rtcp.tail_us, found[other].tail_us, said=at_most(100.0)))
    for run in (*CONTROLS, *ONE_PATH):
        rows.extend(datacentre.scheme_rows(run, Printed(), effort, outcomes))
    curves = {scheme: datacentre.distribution(run.outcomes(effort, outcomes)) for scheme, run in BASE.items()}
    return Evaluation(tuple(rows), curves=curves)


def draw(evaluation: Evaluation) -> Figure:
    """Throughput and delay of the five schemes, and the distributions of delay."""
    drawing, panels = plots.figure(2, width_inches=plots.PAGE_INCHES)
    looks = {scheme: (run, LOOKS[scheme]) for scheme, run in BASE.items()}
    scheme_figure.draw_schemes(panels, evaluation, looks)
    return drawing


METRICS = named(DELAY, THROUGHPUT)
VALUES = {"ahead of a constant window": lambda: datacentre.ahead(RTCP, CONTROLS[0])}


def experiment(declared: Declaration) -> Experiment:
    """Returns the experiment that the file declares."""
    return declared.experiment(plan, evaluate, draw)

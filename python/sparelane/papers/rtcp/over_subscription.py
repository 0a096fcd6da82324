"""RTCP, section V-C1, Table I (OS) and Fig. 11a: random sending where links between switches are half as fast."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from sparelane.papers.engine.base import Claim, Effort, Experiment, Outcomes, Simulation
from sparelane.papers.engine.claims import about, at_least, at_most, ours, over_paper, ratio
from sparelane.papers.engine.rows import Evaluation, Key, Row
from sparelane.papers.rtcp import datacentre, scheme_figure
from sparelane.papers.rtcp.datacentre import DELAY, LOOKS, MEAN, TAIL, THROUGHPUT, Printed, Run, of, ratio_row
from sparelane.papers.rtcp.random_sending import BBR, NULL, PATHS, TIMELY
from sparelane.papers.rtcp.statements import HALF, OVER_SUBSCRIPTION
from sparelane.reports import plots

BASE = {
    scheme: Run(scheme, (*HALF, "scheme.rtcp.alpha=1000") if scheme == "RTCP" else HALF, "over-subscription")
    for scheme in OVER_SUBSCRIPTION
}
CONTROLS = datacentre.controls(BASE["RTCP"])
ONE_PATH = [run.varied("one path between two leaves", "routing=single-path") for run in BASE.values()]
RTCP = BASE["RTCP"]

ASSUMPTIONS = (
    *datacentre.ASSUMPTIONS,
    "As random sending, with 20 Gb/s between leaves and spines, and alpha = 1000 for RTCP, as the paper says.",
    datacentre.NO_CONTROL,
)


REASONS: Mapping[Key, str] = {
    BASE["NewReno"].key(THROUGHPUT): PATHS,
    BASE["DCTCP"].key(THROUGHPUT): PATHS,
    BASE["BBR"].key(THROUGHPUT): PATHS,
    BASE["BBR"].key(DELAY, MEAN): BBR,
    BASE["TIMELY"].key(THROUGHPUT): TIMELY,
    BASE["TIMELY"].key(DELAY, MEAN): TIMELY,
    RTCP.key(of(THROUGHPUT, "TIMELY")): TIMELY,
    RTCP.key(of(DELAY, "TIMELY"), MEAN): TIMELY,
    RTCP.key(of(DELAY, "TIMELY"), TAIL): TIMELY,
    RTCP.key(of(DELAY, "BBR"), TAIL): BBR,
}

CLAIMS = (
    Claim(
        "RTCP's throughput is within 10 % of the printed one in over-subscription (Table I)",
        over_paper(RTCP.key(THROUGHPUT)),
        full=(0.9, 1.1),
        quick=(0.8, 1.25),
    ),
    Claim(
        "RTCP's mean delay is within 20 % of the printed one in over-subscription (Table I)",
        over_paper(RTCP.key(DELAY, MEAN)),
        full=(0.8, 1.2),
        quick=(0.7, 1.4),
    ),
    *(
        Claim(
            f"RTCP's 99th delay is below {other}'s in over-subscription (Fig. 11a)",
            ours(RTCP.key(of(DELAY, other), TAIL)),
            full=at_most(100.0),
            reason=reason,
        )
        for other, reason in (("DCTCP", PATHS), ("NewReno", PATHS), ("TIMELY", TIMELY), ("BBR", BBR))
    ),
    Claim(
        "RTCP has 1.83 % less throughput than TIMELY (introduction): of TIMELY's, in percent",
        ours(RTCP.key(of(THROUGHPUT, "TIMELY"))),
        full=about(98.17, 5.0),
        reason=TIMELY,
    ),
    Claim(
        "... and 85.08 % less delay (introduction): of TIMELY's, in percent",
        ours(RTCP.key(of(DELAY, "TIMELY"), MEAN)),
        full=at_most(14.92),
        reason=TIMELY,
    ),
    Claim(
        "RTCP is ahead of a constant window of one bandwidth-delay product, in throughput or in delay (ours)",
        datacentre.ahead(RTCP, CONTROLS[0]),
        full=at_least(1.0),
        reason=NULL,
    ),
    Claim(
        "RTCP is not a constant window of x_max: that has several times its mean delay",
        ratio(CONTROLS[1].key(DELAY, MEAN), RTCP.key(DELAY, MEAN)),
        full=at_least(2.0),
        quick=at_least(1.5),
    ),
)


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


EXPERIMENT = Experiment(
    id="rtcp/over-subscription",
    title="Over-subscription: throughput and delay of five schemes",
    source="RTCP, section V-C1, Table I (OS) and Fig. 11a",
    method="Random sending with half the capacity between leaves and spines, in ns-3.",
    assumptions=ASSUMPTIONS,
    fitted=datacentre.FITTED,
    full=Effort("full", seeds=10, stop_s=0.05),
    quick=Effort("quick", seeds=1, stop_s=0.01),
    plan=plan,
    evaluate=evaluate,
    draw=draw,
    reasons=REASONS,
    claims=CLAIMS,
)

"""RTCP, section V-C2 and Fig. 11b: 95 servers send to one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from matplotlib.figure import Figure

from sparelane.experiments import plots
from sparelane.experiments.base import Claim, Effort, Evaluation, Experiment, Outcomes, Simulation
from sparelane.experiments.claims import at_least, at_most, ours, ratio
from sparelane.experiments.rtcp import datacentre, scheme_figure
from sparelane.experiments.rtcp.datacentre import Printed, Run
from sparelane.experiments.rtcp.statements import INCAST, INCAST_RTCP

RUNS: Mapping[str, Run] = {
    scheme: Run(scheme, INCAST_RTCP if scheme == "RTCP" else (), "95 to 1", INCAST)
    for scheme in ("DCTCP", "LEDBAT", "Vegas", "TIMELY", "RTCP")
}
CONTROLS = datacentre.controls(RUNS["RTCP"])
LONGER: Mapping[str, Run] = {f"{scheme}, runs 5 times as long": replace(run, lengths=5) for scheme, run in RUNS.items()}
VARIANTS: Mapping[str, Run] = {
    "RTCP, alpha in 0.5 bytes per KB": Run(
        "RTCP", (*INCAST_RTCP, "scheme.rtcp.alpha_unit=0.5"), "alpha_unit 0.5", INCAST
    )
}
BELOW = " (paper: below 56)"

ASSUMPTIONS = (
    *datacentre.ASSUMPTIONS,
    "All 95 other servers send to the first one without end, each from a moment within the first millisecond that is "
    "drawn with the seed. RTCP has alpha = 5000 and an initial window of 2, as the paper says; the others start with "
    "10, and LEDBAT with 2 by its RFC.",
    "Runs of 20 ms, as in the search for the setting; rows with longer runs say what changes.",
    "LEDBAT measures one-way delays exactly, with its target of 100 ms, a thousand times what these queues hold.",
)


SHORTER = (
    "the unit of alpha: with alpha in 0.5 bytes per KB the tail is longer than the paper's (row), and Table II's "
    "delays are, too"
)
REASONS: Mapping[tuple[str, str], str] = {
    ("RTCP", "99th delay, of LEDBAT's"): SHORTER,
    ("RTCP", "99th delay, of Vegas's"): SHORTER,
}

CLAIMS = (
    *(
        Claim(
            f"RTCP's 99th delay is at most 70 % of {other}'s in the incast (section V-C2, abstract: 56 %)",
            ours("RTCP", f"99th delay, of {other}'s{paper}"),
            full=at_most(70.0),
            quick=at_most(75.0),
        )
        for other, paper in (("LEDBAT", ""), ("Vegas", ""), ("TIMELY", BELOW))
    ),
    Claim(
        "RTCP is not a constant window: that of 10 segments has a longer tail",
        ratio(("null: a constant window of 10", "99th delay"), ("RTCP", "99th delay")),
        full=at_least(1.3),
        quick=at_least(1.2),
    ),
)


def plan(effort: Effort) -> Sequence[Simulation]:
    """The five schemes, and what RTCP must be told from."""
    return datacentre.plan([*RUNS.values(), *CONTROLS.values(), *LONGER.values(), *VARIANTS.values()], effort)


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
        ("TIMELY", BELOW, None),
        ("DCTCP", " (paper: above 100)", None),
    )
    for other, paper, printed in of:
        rows.append(
            datacentre.ratio_row("RTCP", f"99th delay, of {other}'s{paper}", printed, tails["RTCP"], tails[other])
        )
    for name, run in {**CONTROLS, **LONGER, **VARIANTS}.items():
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
    fitted=datacentre.FITTED,
    full=Effort("full", seeds=10, stop_s=0.02),
    quick=Effort("quick", seeds=1, stop_s=0.02),
    plan=plan,
    evaluate=evaluate,
    draw=draw,
    reasons=REASONS,
    claims=CLAIMS,
)

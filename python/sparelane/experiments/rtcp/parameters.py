"""RTCP, section V-C3, Table II and Fig. 12: alpha and delta."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from sparelane.experiments import plots
from sparelane.experiments.base import Claim, Effort, Evaluation, Experiment, Outcomes, Row, Simulation
from sparelane.experiments.claims import Value, at_least, at_most, falling
from sparelane.experiments.rtcp import datacentre, scheme_figure
from sparelane.experiments.rtcp.datacentre import Printed, Run
from sparelane.experiments.rtcp.statements import TABLE_2

RUNS: Mapping[str, Run] = {pair.name: Run("RTCP", pair.settings, pair.name) for pair in TABLE_2}
CONTROLS = datacentre.controls(RUNS["alpha 1000, delta 10000"])
LOOKS: Mapping[str, plots.Look] = dict(
    zip(
        RUNS,
        (plots.TCP, plots.THIRD, plots.RC3, plots.MODEL, plots.FIFTH),
        strict=True,
    )
)

ASSUMPTIONS = (
    *datacentre.ASSUMPTIONS,
    "The over-subscribed network, random sending.",
)


def _farthest(metric: str) -> Value:
    """By how much the row of the table that is farthest from the printed number differs from it, percent of that."""

    def largest(evaluation: Evaluation) -> float:
        return max(100 * abs(evaluation.ours(name, metric) / evaluation.paper(name, metric) - 1) for name in RUNS)

    return largest


STEEPER = (
    "not explained: the printed delay falls by more from alpha = 300 to 1000 than ours, by a factor of 2.4; no unit "
    "of alpha and delta in the table of the search has all five delays closer"
)
REASONS = {(name, "mean delay"): STEEPER for name in ("alpha 300, delta 10000", "alpha 600, delta 10000")}

CLAIMS = (
    Claim(
        "All throughputs of Table II are within 10 % of the printed ones",
        _farthest("throughput"),
        full=at_most(10.0),
        quick=at_most(25.0),
    ),
    Claim(
        "All mean delays of Table II are within 20 % of the printed ones",
        _farthest("mean delay"),
        full=at_most(20.0),
        quick=at_most(35.0),
    ),
    Claim(
        "A larger alpha means a shorter delay (section V-C3)",
        falling(("alpha 300, delta 10000", "alpha 600, delta 10000", "alpha 1000, delta 10000"), "mean delay"),
        full=at_least(1.1),
        quick=at_least(1.0),
    ),
    Claim(
        "A larger delta means a shorter delay (section V-C3)",
        falling(("alpha 1000, delta 3000", "alpha 1000, delta 6000", "alpha 1000, delta 10000"), "mean delay"),
        full=at_least(1.0),
    ),
    Claim(
        "A smaller delta means more throughput (section V-C3)",
        falling(("alpha 1000, delta 3000", "alpha 1000, delta 6000", "alpha 1000, delta 10000"), "throughput"),
        full=at_least(1.0),
    ),
)


def plan(effort: Effort) -> Sequence[Simulation]:
    """Each row of the table, and what RTCP must be told from."""
    return datacentre.plan([*RUNS.values(), *CONTROLS.values()], effort)


def evaluate(effort: Effort, outcomes: Outcomes) -> Evaluation:
    """Throughput and delay of each row."""
    rows: list[Row] = []
    for pair in TABLE_2:
        rows.extend(datacentre.scheme_rows(pair.name, RUNS[pair.name], pair.printed, effort, outcomes))
    for name, run in CONTROLS.items():
        rows.extend(datacentre.scheme_rows(name, run, Printed(), effort, outcomes))
    curves = {name: datacentre.distribution(run.outcomes(effort, outcomes)) for name, run in RUNS.items()}
    return Evaluation(tuple(rows), curves=curves)


def draw(evaluation: Evaluation) -> Figure:
    """Throughput against delay beside the paper's, and the distributions of delay."""
    drawing, panels = plots.figure(2, width_inches=plots.PAGE_INCHES)
    scheme_figure.draw_schemes(panels, evaluation, LOOKS)
    return drawing


EXPERIMENT = Experiment(
    id="rtcp/parameters",
    title="RTCP's alpha and delta",
    source="RTCP, section V-C3, Table II and Fig. 12",
    method="Random sending on the over-subscribed network under RTCP with five pairs of alpha and delta, in ns-3.",
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

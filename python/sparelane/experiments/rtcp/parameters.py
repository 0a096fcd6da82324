"""RTCP, section V-C3, Table II and Fig. 12: alpha and delta."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from sparelane.experiments import plots
from sparelane.experiments.base import Effort, Evaluation, Experiment, Outcomes, Row, Simulation
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
    "The over-subscribed network. The rows with exact round-trip times are the same runs but for the timestamps.",
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
    full=Effort("full", seeds=10, stop_s=0.05),
    quick=Effort("quick", seeds=1, stop_s=0.01),
    plan=plan,
    evaluate=evaluate,
    draw=draw,
)

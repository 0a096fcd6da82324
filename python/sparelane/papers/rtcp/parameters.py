"""RTCP, section V-C3, Table II and Fig. 12: alpha and delta."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from sparelane.papers.engine.base import Effort, Experiment, Outcomes, Simulation
from sparelane.papers.engine.claims import Value
from sparelane.papers.engine.declared import Declaration, named
from sparelane.papers.engine.rows import Evaluation, Key, Metric, Row
from sparelane.papers.rtcp import datacentre, scheme_figure
from sparelane.papers.rtcp.datacentre import DELAY, MEAN, THROUGHPUT, Printed, Run
from sparelane.papers.rtcp.statements import TABLE_2
from sparelane.reports import plots

RUNS: Mapping[str, Run] = {pair.name: Run("RTCP", pair.settings, pair.name) for pair in TABLE_2}
BY_ALPHA = [f"alpha {alpha}, delta 10000" for alpha in (300, 600, 1000)]
BY_DELTA = [f"alpha 1000, delta {delta}" for delta in (3000, 6000, 10000)]
CONTROLS = datacentre.controls(RUNS["alpha 1000, delta 10000"])
LOOKS: Mapping[str, plots.Look] = dict(
    zip(
        RUNS,
        (plots.TCP, plots.THIRD, plots.RC3, plots.MODEL, plots.FIFTH),
        strict=True,
    )
)


def _farthest(metric: Metric, average: str = "") -> Value:
    """By how much the row of the table that is farthest from the printed number differs from it, percent of that."""
    keys = [run.key(metric, average) for run in RUNS.values()]

    def largest(evaluation: Evaluation) -> float:
        return max(100 * abs(evaluation.ours(key) / evaluation.paper(key) - 1) for key in keys)

    return largest


def _keys(names: Sequence[str], metric: Metric, average: str = "") -> list[Key]:
    return [RUNS[name].key(metric, average) for name in names]


STEEPER = (
    "not explained: the printed delay falls by more from alpha = 300 to 1000 than ours, by a factor of 2.4; no unit "
    "of alpha and delta in the table of the search has all five delays closer"
)


def plan(effort: Effort) -> Sequence[Simulation]:
    """Each row of the table, and what RTCP must be told from."""
    return datacentre.plan([*RUNS.values(), *CONTROLS], effort)


def evaluate(effort: Effort, outcomes: Outcomes) -> Evaluation:
    """Throughput and delay of each row."""
    rows: list[Row] = []
    for pair in TABLE_2:
        rows.extend(datacentre.scheme_rows(RUNS[pair.name], pair.printed, effort, outcomes))
    for run in CONTROLS:
        rows.extend(datacentre.scheme_rows(run, Printed(), effort, outcomes))
    curves = {name: datacentre.distribution(run.outcomes(effort, outcomes)) for name, run in RUNS.items()}
    return Evaluation(tuple(rows), curves=curves)


def draw(evaluation: Evaluation) -> Figure:
    """Throughput against delay beside the paper's, and the distributions of delay."""
    drawing, panels = plots.figure(2, width_inches=plots.PAGE_INCHES)
    scheme_figure.draw_schemes(panels, evaluation, {name: (run, LOOKS[name]) for name, run in RUNS.items()})
    return drawing


METRICS = named(DELAY, THROUGHPUT)
TABLE_II = {"throughput": (THROUGHPUT, ""), "mean delay": (DELAY, MEAN)}
VALUES = {
    "farthest": lambda metric: _farthest(*TABLE_II[metric]),
    "ahead of a constant window": lambda: datacentre.ahead(RUNS[BY_ALPHA[2]], CONTROLS[0]),
}


def experiment(declared: Declaration) -> Experiment:
    """Returns the experiment that the file declares."""
    return declared.experiment(plan, evaluate, draw)

"""RAPID, Table VI: what tau and eta do to the transfer, and to web users beside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from matplotlib.figure import Figure

from sparelane.papers.engine.base import Effort, Experiment, Outcomes, Simulation
from sparelane.papers.engine.claims import Value, falling, spread
from sparelane.papers.engine.declared import Declaration, named
from sparelane.papers.engine.rows import Evaluation, Key, Metric
from sparelane.papers.rapid import web
from sparelane.papers.rapid.transfers import LOSS, THROUGHPUT
from sparelane.papers.rapid.web import MEDIAN, WEB_FLOW, Run
from sparelane.reports import plots

# The settings of the table: tau in milliseconds, and eta. The paper prints the gain 1 / eta.
SETTINGS = (
    *((50, 4), (10, 1), (20, 2), (30, 3), (50, 6)),
    *((5, 1), (10, 2), (20, 4), (30, 6), (10, 3), (20, 6)),
    *((5, 2), (10, 4), (5, 3), (10, 6)),
)
RUNS: Mapping[tuple[int, int], Run] = {
    (tau_ms, eta): Run(
        "rapid",
        (*web.round_trip(5), f"scheme.rapid.tau={tau_ms}ms", f"scheme.rapid.eta={eta}"),
        f"tau {tau_ms} ms, eta {eta}",
        "RAPID",
    )
    for tau_ms, eta in SETTINGS
}


def plan(effort: Effort) -> Sequence[Simulation]:
    """Every setting with every seed."""
    return web.plan(list(RUNS.values()), effort)


def evaluate(effort: Effort, outcomes: Outcomes) -> Evaluation:
    """Returns the rows of the table."""
    rows = [row for run in RUNS.values() for row in run.rows(effort, outcomes)]
    return Evaluation(tuple(rows))


def restate(found: Evaluation) -> Evaluation:
    """Returns the evaluation with a note on the order of the settings, which needs the paper's numbers."""
    return replace(found, notes=(order_note(found),))


def order_note(evaluation: Evaluation) -> str:
    """Whether throughput falls as tau times the gain grows, as the paper says."""
    from scipy.stats import spearmanr

    products = [tau_ms / eta for tau_ms, eta in RUNS]
    rates = [evaluation.find(run.key(THROUGHPUT)) for run in RUNS.values()]
    ours = spearmanr(products, [row.value for row in rates]).statistic
    paper = spearmanr(products, [row.paper for row in rates]).statistic
    return f"Rank correlation of throughput with tau / eta: {ours:.2f}; the paper's: {paper:.2f}."


def draw(evaluation: Evaluation) -> Figure:
    """Throughput, and the median web flow, over tau / eta; each axis as far as there are numbers."""
    drawing, panels = plots.figure(2, width_inches=plots.PAGE_INCHES)
    places = [tau_ms / eta for tau_ms, eta in RUNS]
    labels = {(THROUGHPUT, ""): "throughput (Gb/s)", (WEB_FLOW, MEDIAN): "median web flow (ms)"}
    for axes, (number, label) in zip(panels, labels.items(), strict=True):
        rows = [evaluation.find(run.key(*number)) for run in RUNS.values()]
        plots.crosses(axes, places, rows)
        heights, spread = [row.value or 0.0 for row in rows], [row.interval or 0.0 for row in rows]
        look = plots.RC3
        axes.errorbar(
            places, heights, spread, fmt=look.marker, color=look.ink, markersize=3.5, zorder=6, label="ours", capsize=2
        )
        # As far as there are numbers; an interval that goes further is cut.
        numbers = [number for row in rows for number in (row.value, row.paper) if number is not None]
        room = 0.15 * (max(numbers) - min(numbers))
        axes.set_ylim(min(numbers) - room, max(numbers) + room)
        axes.set_xlabel("tau / eta (ms)")
        axes.set_ylabel(label)
        plots.legend_above(axes, 2)
    return drawing


def _by_product() -> Mapping[float, list[tuple[int, int]]]:
    """The settings of equal tau / eta, where there are several, by it; the smallest tau first."""
    groups: dict[float, list[tuple[int, int]]] = {}
    for setting in sorted(RUNS):
        groups.setdefault(setting[0] / setting[1], []).append(setting)
    return {product: group for product, group in groups.items() if len(group) > 1}


def _keys(settings: Sequence[tuple[int, int]], metric: Metric, average: str = "") -> list[Key]:
    return [RUNS[setting].key(metric, average) for setting in settings]


def _falls(average: str, group: Sequence[tuple[int, int]]) -> Value:
    return falling(_keys(group, WEB_FLOW, average))


def _of_all_groups(
    value: Callable[[Sequence[tuple[int, int]]], Value], choose: Callable[[list[float]], float]
) -> Value:
    return lambda evaluation: choose([value(group)(evaluation) for group in _by_product().values()])


METRICS = named(LOSS, THROUGHPUT, WEB_FLOW)
VALUES = {
    "largest spread of throughput": lambda: _of_all_groups(lambda group: spread(_keys(group, THROUGHPUT)), max),
    "smallest fall of web flows": lambda average: _of_all_groups(partial(_falls, average), min),
}


def experiment(declared: Declaration) -> Experiment:
    """Returns the experiment that the file declares."""
    return declared.experiment(plan, evaluate, draw, restate=restate)

"""RAPID, Table VI: what tau and eta do to the transfer, and to web users beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from matplotlib.figure import Figure

from sparelane.experiments import plots
from sparelane.experiments.base import Claim, Effort, Experiment, Outcomes, Simulation
from sparelane.experiments.claims import over_paper
from sparelane.experiments.rapid import testbed, web
from sparelane.experiments.rapid.printed import TABLE_VI
from sparelane.experiments.rapid.transfers import THROUGHPUT
from sparelane.experiments.rapid.web import MEDIAN, WEB_FLOW, Run
from sparelane.experiments.rows import Evaluation

RUNS: Mapping[tuple[int, int], Run] = {
    (tau_ms, eta): Run(
        "rapid",
        (*web.round_trip(5), f"scheme.rapid.tau={tau_ms}ms", f"scheme.rapid.eta={eta}"),
        f"tau {tau_ms} ms, eta {eta}",
        "RAPID",
    )
    for tau_ms, eta in TABLE_VI
}


def plan(effort: Effort) -> Sequence[Simulation]:
    """Every setting with every seed."""
    return web.plan(list(RUNS.values()), effort)


def evaluate(effort: Effort, outcomes: Outcomes) -> Evaluation:
    """The rows of the table, and the rank correlation of throughput with tau over eta, as the paper's."""
    rows = [row for setting, run in RUNS.items() for row in run.rows(TABLE_VI[setting].numbers(run), effort, outcomes)]
    found = Evaluation(tuple(rows))
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
        axes.set_xlabel("tau / eta (ms)")
        axes.set_ylabel(label)
        plots.legend_above(axes, 2)
    return drawing


EXPERIMENT = Experiment(
    id="rapid/table6-tau-eta",
    title="What tau and eta do",
    source="RAPID, section V-D and Table VI",
    method="RAPID with a round trip of 5 ms beside web users, with fifteen settings of tau and eta.",
    assumptions=(
        *testbed.ASSUMPTIONS,
        *web.ASSUMPTIONS,
        "The second number that the paper prints is read as the gain 1/eta: by that reading its throughput falls with "
        "tau / eta, as its text says of the product.",
    ),
    full=Effort("full", seeds=3, stop_s=120.0),
    quick=Effort("quick", seeds=1, stop_s=3.0),
    plan=plan,
    evaluate=evaluate,
    draw=draw,
    fitted=testbed.FITTED,
    claims=(
        Claim(
            "with tau = 50 ms and eta = 4 RAPID has 6.62 Gb/s beside web users",
            over_paper(RUNS[50, 4].key(THROUGHPUT)),
            full=(0.9, 1.1),
            quick=(0.8, 1.1),
        ),
    ),
)

"""RAPID, Figs. 12 and 13: three transfers of the same protocol share the path."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import polars as pl
from matplotlib.figure import Figure

from sparelane.papers.engine.base import Effort, Experiment, Outcome
from sparelane.papers.engine.cells import Cell, Runs
from sparelane.papers.engine.declared import Declaration, named
from sparelane.papers.engine.rows import Evaluation, Metric, Row, measured
from sparelane.papers.engine.statistics import jain
from sparelane.papers.rapid import testbed
from sparelane.papers.rapid.notes import RAPID, by_scheme
from sparelane.reports import plots

SETTING = "three transfers"
PAIRS = 'pairs=[["left0", "right0"], ["left1", "right1"], ["left0", "right0"]]'
# The time between the starts of two transfers, and the time from which on the run is measured, as shares of the run.
GAP = 0.2
COUNTED_FROM = 0.5
# The number of samples in a run, and of samples in a moving average of the figure.
INTERVALS = 120
AVERAGED = 6
FAIRNESS = Metric("Jain's index")
TOGETHER = Metric("throughput of the three", "Gb/s")
# The variant of RAPID whose rate never falls below its value at the start.
BOUNDED = "R_avg of at least 1 Gb/s"
BOUND = "scheme.rapid.min_rate=1Gbps"


@dataclass(frozen=True, slots=True)
class Fairness:
    """The experiment; `schemes` are the names of the schemes in rows."""

    schemes: Sequence[str]

    def cells(self, effort: Effort) -> Iterable[Cell]:
        """Yields three transfers of each scheme, and of RAPID's variant."""
        return (*(cell(scheme, effort) for scheme in self.schemes), bounded(effort))

    def evaluate(self, runs: Runs) -> Evaluation:
        """Returns fairness and total throughput of each scheme; the paper prints only figures."""
        rows = []
        curves = {}
        for scheme in self.schemes:
            one = cell(scheme, runs.effort)
            rows += rows_of(runs, one)
            curves[testbed.scheme(scheme)] = throughputs(runs.of(one)[0], one)
        rows += rows_of(runs, bounded(runs.effort))
        evaluation = Evaluation(tuple(rows), curves=curves)
        return replace(evaluation, notes=(order_note(evaluation),))

    def draw(self, evaluation: Evaluation) -> Figure:
        """Returns the throughput of the three transfers over time, a panel for each scheme."""
        drawing, panels = plots.figure(3, width_inches=plots.PAGE_INCHES, rows=5)
        fairness = by_scheme(evaluation, SETTING, FAIRNESS)
        for axes, scheme in zip(panels, self.schemes, strict=True):
            for index, look in enumerate((plots.RC3, plots.THIRD, plots.FIFTH)):
                curve = evaluation.curves[testbed.scheme(scheme)].filter(pl.col("flow") == f"flow {index}")
                curve = curve.with_columns(pl.col("gbps").rolling_mean(AVERAGED, min_samples=1))
                plots.line(axes, f"transfer {index + 1}", look, curve["time_s"].to_list(), curve["gbps"].to_list())
            axes.set_title(f"{scheme}: Jain's index {fairness[scheme].value or 0.0:.2f}")
            axes.set_ylim(0, 10)
        for place, axes in enumerate(panels):
            axes.set_xlabel("time (s), with seed 1").set_visible(place >= len(panels) - 3)
            axes.set_ylabel("Gb/s").set_visible(place % 3 == 0)
        drawing.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
        return drawing


def cell(scheme: str, effort: Effort) -> Cell:
    """Returns three transfers that start one after another."""
    scheme_name, stop_s = testbed.scheme(scheme), effort.stop_s
    from_s = stop_s * COUNTED_FROM
    transfers = f'{{kind="bulk", scheme="{scheme_name}", {PAIRS}, size="unlimited", gap="{stop_s * GAP:g}s"}}'
    return Cell(
        testbed.SCENARIO,
        (
            *testbed.transfer(scheme_name, stop_s),
            f"workload={transfers}",
            f"measure.from={from_s:g}s",
            testbed.QUICK_START,
            f"sample.interval={stop_s / INTERVALS * 1e3:g}ms",
            "sample.flows=[0, 1, 2]",
        ),
        cost=stop_s,
        setting=SETTING,
        scheme=scheme,
        from_s=from_s,
        stop_s=stop_s,
    )


def bounded(effort: Effort) -> Cell:
    """Returns three transfers of RAPID whose rate never falls below its value at the start."""
    one = cell(RAPID, effort)
    return replace(one, settings=(*one.settings, BOUND), variant=BOUNDED)


def rows_of(runs: Runs, one: Cell) -> list[Row]:
    """Returns the fairness and the total throughput of a cell."""
    shares = [shares_gbps(outcome, one) for outcome in runs.of(one)]
    return [
        measured(one.key(FAIRNESS), None, [jain(each) for each in shares]),
        measured(one.key(TOGETHER), None, [sum(each) for each in shares]),
    ]


def shares_gbps(outcome: Outcome, one: Cell) -> list[float]:
    """Returns the throughput of each transfer while all three were active, in Gb/s."""
    measured_bytes = outcome.flows.sort("id")["measured_bytes"].to_list()
    return [found * 8 / (one.stop_s - one.from_s) / 1e9 for found in measured_bytes]


def throughputs(outcome: Outcome, one: Cell) -> pl.DataFrame:
    """Returns the throughput in each sampling interval: `time_s`, `flow` and `gbps`."""
    interval_s = one.stop_s / INTERVALS
    held = outcome.series.filter(pl.col("quantity") == "held_bytes").sort("probe", "time_s")
    return held.select(
        pl.col("time_s"),
        pl.col("probe").cast(pl.String).alias("flow"),
        (pl.col("value").diff().over("probe") * 8 / interval_s / 1e9).alias("gbps"),
    ).drop_nulls()


def order_note(evaluation: Evaluation) -> str:
    """Returns the schemes in the order of their fairness, with their total throughput."""
    fairness, used = (by_scheme(evaluation, SETTING, metric) for metric in (FAIRNESS, TOGETHER))
    ranked = sorted(fairness, key=lambda scheme: -(fairness[scheme].value or 0.0))
    parts = (f"{one} {fairness[one].value or 0.0:.3f} ({used[one].value or 0.0:.1f} Gb/s)" for one in ranked)
    return f"By fairness: {', '.join(parts)}."


METRICS = named(FAIRNESS, TOGETHER)


def experiment(declared: Declaration) -> Experiment:
    """Returns the experiment that the file declares.

    Raises:
        DeclarationError: a key is wrong.
    """
    study = Fairness(declared.rest.texts("schemes"))
    declared.rest.finish()
    return declared.study(study.cells, study.evaluate, study.draw)

"""RAPID, Figs. 12 and 13: three transfers of the same protocol share the path."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import polars as pl
from matplotlib.figure import Figure

from sparelane.papers.engine.base import Effort, Experiment, Outcome
from sparelane.papers.engine.cells import Cell, Runs
from sparelane.papers.engine.declared import Declaration, named, templates
from sparelane.papers.engine.rows import Evaluation, Metric, Row, measured
from sparelane.papers.engine.statistics import jain
from sparelane.papers.rapid import testbed
from sparelane.papers.rapid.notes import RAPID, by_scheme
from sparelane.papers.rapid.transfers import read_earlier
from sparelane.reports import plots
from sparelane.scenario.settings import toml_value

SETTING = "three transfers"
# The hosts of the three transfers; the first and the third have the same.
PAIRS = [("left0", "right0"), ("left1", "right1"), ("left0", "right0")]
# The time between the starts of two transfers, and the time from which on the run is measured, as shares of the run.
GAP = 0.2
COUNTED_FROM = 0.5
# The number of samples in a run, and of samples in a moving average of the figure.
INTERVALS = 120
AVERAGED = 6
FAIRNESS = Metric("Jain's index")
TOGETHER = Metric("throughput of the three", "Gb/s")


@dataclass(frozen=True, slots=True)
class Triple:
    """Three transfers of one scheme.

    Attributes:
        scheme: the scheme in rows.
        variant: what differs from the paper, in the keys of rows.
        overrides: overrides of the scenario.
        earlier: the transfer that precedes them between each pair of hosts; `None` if they are the first.
    """

    scheme: str
    variant: str
    overrides: tuple[str, ...]
    earlier: testbed.Earlier | None

    def start_s(self, effort: Effort) -> float:
        """Returns the start of the first of the three. Short runs have no earlier transfers."""
        return self.earlier.seconds if self.earlier and testbed.is_long(effort) else 0.0

    def cell(self, effort: Effort) -> Cell:
        """Returns what is simulated at an effort."""
        scheme, start_s = testbed.scheme(self.scheme), self.start_s(effort)
        earlier = self.earlier if start_s else None
        stop_s, from_s = start_s + effort.stop_s, start_s + effort.stop_s * COUNTED_FROM
        hosts = list(dict.fromkeys(PAIRS))
        three = (
            f'{{kind="bulk", scheme="{scheme}", pairs={toml_value([list(pair) for pair in PAIRS])}, '
            f'size="unlimited", start="{start_s:g}s", gap="{effort.stop_s * GAP:g}s"}}'
        )
        workload = [earlier.workload(scheme, hosts), three] if earlier else [three]
        first = len(hosts) if earlier else 0
        return Cell(
            testbed.SCENARIO,
            (
                *testbed.transfer(scheme, stop_s),
                f"workload=[{', '.join(workload)}]",
                f"measure.from={from_s:g}s",
                testbed.QUICK_START,
                f"sample.interval={effort.stop_s / INTERVALS * 1e3:g}ms",
                f"sample.flows={[first + number for number in range(len(PAIRS))]}",
                *(earlier.overrides(hosts) if earlier else ()),
                *self.overrides,
            ),
            cost=stop_s,
            setting=SETTING,
            scheme=self.scheme,
            variant=self.variant,
            from_s=from_s,
            stop_s=stop_s,
        )


@dataclass(frozen=True, slots=True)
class Fairness:
    """The experiment; `triples` are all schemes without variants, then all variants."""

    triples: Sequence[Triple]

    def chosen(self, effort: Effort) -> list[Triple]:
        """Returns all transfers of an effort. Quick efforts leave variants out."""
        return [triple for triple in self.triples if effort.name == "full" or not triple.variant]

    def cells(self, effort: Effort) -> Iterable[Cell]:
        """Yields the cells of all schemes and variants."""
        return (triple.cell(effort) for triple in self.chosen(effort))

    def evaluate(self, runs: Runs) -> Evaluation:
        """Returns fairness and total throughput of each scheme; the paper prints only figures."""
        rows = []
        curves = {}
        for triple in self.chosen(runs.effort):
            one = triple.cell(runs.effort)
            rows += rows_of(runs, one)
            if not triple.variant:
                start_s = triple.start_s(runs.effort)
                curves[testbed.scheme(triple.scheme)] = throughputs(runs.of(one)[0], start_s, runs.effort)
        evaluation = Evaluation(tuple(rows), curves=curves)
        return replace(evaluation, notes=(order_note(evaluation),))

    def draw(self, evaluation: Evaluation) -> Figure:
        """Returns the throughput of the three transfers over time, a panel for each scheme."""
        drawing, panels = plots.figure(3, width_inches=plots.PAGE_INCHES, rows=5)
        fairness = by_scheme(evaluation, SETTING, FAIRNESS)
        schemes = [triple.scheme for triple in self.triples if not triple.variant]
        for axes, scheme in zip(panels, schemes, strict=True):
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


def rows_of(runs: Runs, one: Cell) -> list[Row]:
    """Returns the fairness and the total throughput of a cell."""
    shares = [shares_gbps(outcome, one) for outcome in runs.of(one)]
    return [
        measured(one.key(FAIRNESS), None, [jain(each) for each in shares]),
        measured(one.key(TOGETHER), None, [sum(each) for each in shares]),
    ]


def shares_gbps(outcome: Outcome, one: Cell) -> list[float]:
    """Returns the throughput of each transfer while all three were active, in Gb/s."""
    # Earlier transfers come first.
    measured_bytes = outcome.flows.sort("id").tail(len(PAIRS))["measured_bytes"].to_list()
    return [found * 8 / (one.stop_s - one.from_s) / 1e9 for found in measured_bytes]


def throughputs(outcome: Outcome, start_s: float, effort: Effort) -> pl.DataFrame:
    """Returns the throughput in each sampling interval from `start_s` on: `time_s`, `flow` and `gbps`."""
    interval_s = effort.stop_s / INTERVALS
    held = outcome.series.filter(pl.col("quantity") == "held_bytes").sort("probe", "time_s")
    probes = sorted(held["probe"].cast(pl.String).unique(), key=lambda probe: int(probe.split()[-1]))
    names = {probe: f"flow {place}" for place, probe in enumerate(probes)}
    return (
        held.select(
            (pl.col("time_s") - start_s),
            pl.col("probe").cast(pl.String).replace_strict(names, return_dtype=pl.String).alias("flow"),
            (pl.col("value").diff().over("probe") * 8 / interval_s / 1e9).alias("gbps"),
        )
        .drop_nulls()
        .filter(pl.col("time_s") > 0)
    )


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
    rest = declared.rest
    earlier, others, rapid = read_earlier(rest), rest.texts("overrides_of_others"), rest.texts("overrides_of_rapid")
    # RAPID has no slow-start threshold that a transfer could leave.
    triples = [
        Triple(scheme, "", *((rapid, None) if scheme == RAPID else (others, earlier)))
        for scheme in rest.texts("schemes")
    ]
    for part in templates(rest, "varied"):
        variant, overrides = part.text("variant"), part.texts("overrides")
        triples += [Triple(scheme, variant, overrides, None) for scheme in part.texts("scheme")]
        part.finish()
    rest.finish()
    study = Fairness(triples)
    return declared.study(study.cells, study.evaluate, study.draw)

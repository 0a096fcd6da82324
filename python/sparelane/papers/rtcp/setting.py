"""RTCP's simulations under several settings: which of the paper's statements hold together, and which do not."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from matplotlib.figure import Figure

from sparelane.papers.engine.base import Effort, Experiment
from sparelane.papers.engine.cells import Cell, Runs
from sparelane.papers.engine.declared import Declaration, named, templates
from sparelane.papers.engine.rows import Evaluation, Key, Metric, Row, measured
from sparelane.papers.rtcp.datacentre import DELAY, MEAN, THROUGHPUT, Run
from sparelane.papers.rtcp.statements import (
    GROUPS,
    PRINTED,
    STATEMENTS,
    TABLE_2,
    Numbers,
    holding,
    numbers_of,
    runs_of,
)
from sparelane.reports import plots

SCHEMES = ("NewReno", "DCTCP", "BBR", "TIMELY", "LEDBAT", "Vegas", "constant", "RTCP")
# The groups of statements whose numbers are rows.
SHOWN = ("Table I", "text", "preemption", "incast", "null")


@dataclass(frozen=True, slots=True)
class Settings:
    """The experiment.

    Attributes:
        overrides: overrides of the scenario by the name of the setting.
    """

    overrides: Mapping[str, tuple[str, ...]]

    def _runs(self, setting: str) -> Iterable[tuple[str, str, Run]]:
        """The runs under a setting, each with its case and scheme."""
        for scheme in SCHEMES:
            for case, run in runs_of(scheme).items():
                settings = (*self.overrides[setting], *run.settings)
                yield case, scheme, replace(run, settings=settings, setting=f"{setting}: {case}")

    def cells(self, effort: Effort) -> Iterable[Cell]:
        """Yields every scheme under every setting."""
        return (run.cell(effort) for setting in self.overrides for _, _, run in self._runs(setting))

    def evaluate(self, runs: Runs) -> Evaluation:
        """Returns the number of statements that hold under each setting, and the numbers that distinguish settings."""
        return Evaluation(tuple(row for setting in self.overrides for row in self._rows(setting, runs)))

    def _rows(self, setting: str, runs: Runs) -> Iterable[Row]:
        found: list[dict[str, float]] = [{} for _ in runs.effort.seed_numbers()]
        for case, scheme, run in self._runs(setting):
            for numbers, outcome in zip(found, runs.of(run.cell(runs.effort)), strict=True):
                numbers |= numbers_of(case, scheme, outcome, runs.effort.stop_s)
        return _rows(setting, found)

    def draw(self, evaluation: Evaluation) -> Figure:
        """Returns the number of statements that hold under each setting, by group."""
        drawing, [axes] = plots.figure(width_inches=plots.PAGE_INCHES)
        looks = (plots.RC3, plots.TCP, plots.THIRD, plots.MODEL, plots.FIFTH, plots.FOURTH)
        bars = [
            plots.Bars.of_rows(setting, look, [evaluation.find(held_key(setting, group)) for group in GROUPS])
            for setting, look in zip(self.overrides, looks, strict=False)
        ]
        plots.grouped_bars(axes, [f"{group}\n(of {_size(group)})" for group in GROUPS], bars)
        axes.set_xlabel("statements of the paper")
        axes.set_ylabel("that hold")
        plots.legend_above(axes, 2)
        return drawing


def _rows(setting: str, found: Sequence[Numbers]) -> Iterable[Row]:
    mean = {key: statistics.fmean(one[key] for one in found) for key in found[0]}
    for group in (None, *GROUPS):
        yield measured(held_key(setting, group), None, [holding(mean, group)])
    for run in TABLE_2:
        for metric, average, unit in ((THROUGHPUT, "", "mbps"), (DELAY, MEAN, "us")):
            printed = PRINTED[run.key(metric, average)]
            values = [100 * one[f"OS {run.setting} RTCP {unit}"] / printed for one in found]
            of_printed = Metric(f"{metric.name}, of the printed", "%")
            yield measured(Key(setting, of_printed, "RTCP", average, f"Table II, {run.setting}"), None, values)
    for one in STATEMENTS:
        if one.group in SHOWN:
            yield measured(Key(setting, Metric(one.text, "%")), None, [100 * one.value(numbers) for numbers in found])


def held_key(setting: str, group: str | None) -> Key:
    """Returns the key of the number of statements that hold under a setting, in a group or in total."""
    return Key(setting, Metric(f"statements that hold, of {_size(group)}"), traffic=group or "")


def _size(group: str | None) -> int:
    return sum(group in (None, one.group) for one in STATEMENTS)


METRICS = named()


def experiment(declared: Declaration) -> Experiment:
    """Returns the experiment that the file declares.

    Raises:
        DeclarationError: a key is wrong.
    """
    rest = declared.rest
    overrides = {}
    for part in templates(rest, "settings"):
        overrides[part.text("name")] = part.texts("overrides")
        part.finish()
    rest.sections("statements")
    rest.finish()
    study = Settings(overrides)
    return declared.study(study.cells, study.evaluate, study.draw)

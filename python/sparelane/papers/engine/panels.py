"""Draws the figure that an experiment's file describes as panels.

A panel shows series of rows as bars in groups, or as markers along an axis of numbers. The panel's `rows` select rows
by parts of their keys; each series adds its name, its look and the parts in which it differs. By default, the labels of
groups are the parts in which their rows differ. Crosses are the paper's numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sparelane.papers.engine.base import Effort, Experiment
from sparelane.papers.engine.cells import Cell, Runs
from sparelane.papers.engine.declared import KEY_PARTS, Declaration, templates
from sparelane.papers.engine.rows import Evaluation, Key, Row, joined
from sparelane.papers.engine.sections import Section
from sparelane.reports import plots
from sparelane.reports.plots import Bars, Look

LOOKS: Mapping[str, Look] = {
    "grey": plots.TCP,
    "blue": plots.RC3,
    "white": plots.MODEL,
    "orange": plots.THIRD,
    "violet": plots.FOURTH,
    "green": plots.FIFTH,
}
LEGEND_COLUMNS = 3


@dataclass(frozen=True, slots=True)
class Series:
    """Rows that are drawn in one look.

    Attributes:
        name: the name in the legend.
        look: the style.
        keys: the keys of the rows, in order.
    """

    name: str
    look: Look
    keys: Sequence[Key]


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel.

    Attributes:
        draw: draws the series, as bars or as markers.
        series: the series.
        labels: the name of each position, for bars.
        at: the positions on an axis of numbers, for markers.
        above: the keys of the percentages above the groups of bars; may be empty.
        axis: the label of the horizontal axis.
        unit: the label of the vertical axis.
        both_signs: draws a line at zero, with space below for negative numbers.
        log: the logarithmic axes, as in `xy`.
        limits: the ends of the vertical axis, or only the lower end; empty for automatic ones.
        x_limits: the ends of the horizontal axis, or the left end alone; empty for automatic ones.
        small: uses small labels for positions.
        rotation: the rotation of the labels of positions, in degrees.
        paper: the name of the paper's numbers in the legend.
        columns: the number of columns of the legend; 0 for no legend.
    """

    draw: Callable[[Axes, Panel, Evaluation], None]
    series: Sequence[Series]
    labels: Sequence[str]
    at: Sequence[float]
    above: Sequence[Key]
    axis: str
    unit: str
    both_signs: bool
    log: str
    limits: Sequence[float]
    x_limits: Sequence[float]
    small: bool
    rotation: float
    paper: str
    columns: int

    def on(self, axes: Axes, evaluation: Evaluation) -> None:
        """Draws the panel."""
        self.draw(axes, self, evaluation)
        if self.both_signs:
            plots.both_signs(axes)
        if "x" in self.log:
            axes.set_xscale("log")
        if "y" in self.log:
            axes.set_yscale("log")
        if self.at and self.labels:
            axes.set_xticks(self.at, self.labels)
            axes.xaxis.minorticks_off()
        if self.limits:
            axes.set_ylim(*self.limits)
        if self.x_limits:
            axes.set_xlim(*self.x_limits)
        if self.small:
            axes.tick_params(axis="x", labelsize=6)
        if self.rotation:
            axes.tick_params(axis="x", rotation=self.rotation)
        axes.set_xlabel(self.axis)
        axes.set_ylabel(self.unit)
        for line in axes.get_lines():
            if line.get_label() == plots.PAPER_LABEL:
                line.set_label(self.paper)
        if self.columns:
            plots.legend_above(axes, self.columns)


def _rows(keys: Sequence[Key], evaluation: Evaluation) -> list[Row]:
    """Returns the rows with these keys.

    A quick effort may lack some rows. The row without the variant takes the place of a missing row, if there is one.
    """
    known = {row.key: row for row in evaluation.rows}
    return [known.get(key) or known.get(replace(key, variant="")) or Row(key, None, None) for key in keys]


def _series(panel: Panel, evaluation: Evaluation) -> list[Bars]:
    return [Bars.of_rows(one.name, one.look, _rows(one.keys, evaluation)) for one in panel.series]


def _bars(axes: Axes, panel: Panel, evaluation: Evaluation) -> None:
    rows = [_rows(one.keys, evaluation) for one in panel.series]
    # A quick effort may lack all rows of a group.
    shown = [group for group in range(len(panel.labels)) if any(found[group].value is not None for found in rows)]
    bars = [
        Bars.of_rows(one.name, one.look, [found[group] for group in shown])
        for one, found in zip(panel.series, rows, strict=True)
    ]
    plots.grouped_bars(axes, [panel.labels[group] for group in shown], bars)
    if panel.above:
        cuts = _rows(panel.above, evaluation)
        plots.reductions_above(axes, [cuts[group].value for group in shown], bars)


def _log_points(axes: Axes, panel: Panel, evaluation: Evaluation) -> None:
    plots.grouped_points(axes, panel.labels, _series(panel, evaluation))


def _points(axes: Axes, panel: Panel, evaluation: Evaluation) -> None:
    for one in panel.series:
        rows = _rows(one.keys, evaluation)
        plots.points(axes, one.name, one.look, panel.at, rows)
        papers = {row.paper for row in rows}
        if len(papers) == 1 and None not in papers:
            # The paper prints one number for all points.
            label = f"{plots.PAPER_LABEL}, {one.name}"
            axes.axhline(papers.pop(), color=one.look.ink, linestyle=":", linewidth=1.0, label=label)  # type: ignore[arg-type]
        else:
            plots.crosses(axes, panel.at, rows, label=one is panel.series[-1])


def _filled_points(axes: Axes, panel: Panel, evaluation: Evaluation) -> None:
    """Draws simulated numbers filled and printed numbers hollow, with room for both on a logarithmic axis."""
    numbers: list[float] = []
    for one in panel.series:
        rows = _rows(one.keys, evaluation)
        plots.filled_points(axes, one.name, one.look, panel.at, rows)
        numbers += [number for row in rows for number in (row.value, row.paper) if number]
    axes.set_ylim(min(numbers) / 1.5, 1.5 * max(numbers))


def _marks(axes: Axes, panel: Panel, evaluation: Evaluation) -> None:
    """Draws markers without lines above the crosses of the printed numbers. Wide intervals are cut off."""
    numbers: list[float] = []
    for one in panel.series:
        rows = _rows(one.keys, evaluation)
        plots.marks(axes, one.name, one.look, panel.at, rows)
        numbers += [number for row in rows for number in (row.value, row.paper) if number is not None]
    room = 0.15 * (max(numbers) - min(numbers))
    axes.set_ylim(min(numbers) - room, max(numbers) + room)


def _curves(axes: Axes, panel: Panel, evaluation: Evaluation) -> None:
    """Draws the first two columns of the evaluation's curves that have the names of the series."""
    for one in panel.series:
        x, y, *_ = evaluation.curves[one.name].iter_columns()
        plots.line(axes, one.name, one.look, x.to_list(), y.to_list())


KINDS = {
    "bars": _bars,
    "log points": _log_points,
    "points": _points,
    "filled points": _filled_points,
    "marks": _marks,
    "curves": _curves,
}


def study(
    declared: Declaration, cells: Callable[[Effort], Iterable[Cell]], evaluate: Callable[[Runs], Evaluation]
) -> Experiment:
    """Returns a study whose figure consists of the panels in its file. All other keys of the file must have been read.

    Raises:
        DeclarationError: a key is wrong or unknown.
    """
    draw = read(declared)
    declared.rest.finish()
    return declared.study(cells, evaluate, draw)


class Case(Protocol):
    """A setting of an experiment that is simulated and judged on its own."""

    def cell(self, effort: Effort) -> Cell:
        """Returns what is simulated at an effort."""
        ...

    def rows(self, runs: Runs) -> list[Row]:
        """Returns the rows of the case."""
        ...


def study_of_cases(declared: Declaration, read_case: Callable[[Section], Case]) -> Experiment:
    """Returns a study like `study`, of the cases that the tables `cases` in its file declare.

    Raises:
        DeclarationError: a key is wrong or unknown.
    """
    cases = [read_case(part) for part in templates(declared.rest, "cases")]

    def cells(effort: Effort) -> Iterable[Cell]:
        return (case.cell(effort) for case in cases)

    def evaluate(runs: Runs) -> Evaluation:
        return Evaluation(tuple(row for case in cases for row in case.rows(runs)))

    return study(declared, cells, evaluate)


def read(declared: Declaration) -> Callable[[Evaluation], Figure]:
    """Returns the function that draws the panels of an experiment's file, in one row or in `panel_rows` rows.

    Raises:
        DeclarationError: a key is wrong.
    """
    found = [_panel(part, declared) for part in templates(declared.rest, "panel")]
    width_inches, rows = declared.rest.number("width", plots.PAGE_INCHES), declared.rest.whole("panel_rows", 1)

    per_row = len(found) // rows
    names = [[one.name for one in panel.series] for panel in found]

    def draw(evaluation: Evaluation) -> Figure:
        drawing, all_axes = plots.figure(per_row, width_inches=width_inches, rows=rows)
        for number, (axes, panel) in enumerate(zip(all_axes, found, strict=True)):
            # One legend is enough for panels with the same series below each other.
            is_repeated = number >= per_row and names[number] == names[number - per_row]
            (replace(panel, columns=0) if is_repeated else panel).on(axes, evaluation)
        return drawing

    return draw


def _tables(part: Section) -> Iterator[Section]:
    """Yields the table of each series.

    A part of the keys may be a table of looks: `scheme = { TCP = "grey", RC3 = "blue" }` makes two series, whose names
    are those of the schemes.
    """
    for one in part.sections("series"):
        by = next((name for name in KEY_PARTS if one.has_table(name)), None)
        if by is None:
            yield one
            continue
        looks = one.section(by)
        for name in looks:
            yield one.completed({"name": name, by: name, "look": looks.text(name)})


def _panel(part: Section, declared: Declaration) -> Panel:
    rows = [declared.rows.within(one) for one in part.sections("rows")]

    def keys(section: Section) -> list[Key]:
        return [key for selector in rows for key in selector.keys(section.copy())]

    series = [Series(one.text("name"), one.one_of("look", LOOKS), keys(one)) for one in _tables(part)]
    above = keys(part.section("above")) if "above" in part else []
    at = part.numbers("at")
    labels = part.texts("labels") or (() if at else _differences(series[0].keys))
    draw = part.one_of("kind", KINDS, "bars")
    found = Panel(
        draw,
        series,
        labels,
        at,
        above,
        part.text("axis"),
        part.text("unit", _label(series[0].keys[0], declared.units) if series[0].keys else None),
        part.flag("both_signs"),
        part.text("log", ""),
        part.numbers("limits"),
        part.numbers("x_limits"),
        part.flag("small"),
        part.number("rotation", 0.0),
        part.text("paper", plots.PAPER_LABEL),
        part.whole("columns", LEGEND_COLUMNS),
    )
    part.finish()
    # Curves are tables of their own, so their rows need no positions.
    if draw is _curves:
        return found
    places = len(at or labels)
    for selected in (*(one.keys for one in series), *([above] if above else [])):
        if len(selected) != places:
            raise part.fail("rows", f"selects {len(selected)} rows for {places} positions")
    return found


def _label(key: Key, units: Mapping[str, str]) -> str:
    """Returns the label of a vertical axis: the one for the metric, or else the metric's name and unit."""
    metric = key.metric
    default = f"{metric.name} ({metric.unit})" if metric.unit else metric.name
    return units.get(metric.name, default).format(average=key.average)


def _differences(keys: Sequence[Key]) -> list[str]:
    """Returns a label for each key: its parts that are not the same in all of them."""
    parts = [name for name in KEY_PARTS if name != "metric" and len({getattr(key, name) for key in keys}) > 1]
    return [joined(*(getattr(key, name) for name in parts)) for key in keys]

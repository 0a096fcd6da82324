"""Draws completion times and reductions by setting, as the files of kind `completion` describe them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sparelane.papers.engine.rows import Evaluation, Key, Metric, MissingRowError, Row, joined
from sparelane.papers.engine.sections import Section
from sparelane.papers.rc3.internet2 import AVERAGES, FCT, RC3, REDUCTION, TCP, Setting
from sparelane.reports import plots
from sparelane.reports.plots import Bars

SCHEMES: Mapping[str, plots.Look] = {TCP: plots.TCP, RC3: plots.RC3}
LOOKS = dict(zip(AVERAGES, SCHEMES.values(), strict=True))
REDUCTION_LABEL = "reduction of mean\ncompletion time (%)"


@dataclass(frozen=True, slots=True)
class Place:
    """One of a figure's settings.

    Attributes:
        setting: as the rows call it.
        variant: of the rows.
        label: on the axis.
        at: where on an axis of numbers.
    """

    setting: str
    variant: str
    label: str
    at: float

    def row(self, evaluation: Evaluation, metric: Metric, scheme: str, average: str) -> Row:
        """The row of this place; that without the variant where a quick effort has none."""
        key = Key(self.setting, metric, scheme, average, variant=self.variant)
        try:
            return evaluation.find(key)
        except MissingRowError:
            return evaluation.find(Key(self.setting, metric, scheme, average))


def read(part: Section, settings: Mapping[Setting, str]) -> Callable[[Evaluation], Figure]:
    """The figure that a file chooses of these settings, which are here with what their rows say is varied besides.

    Raises:
        DeclarationError: a key is wrong.
    """
    kinds = {"times": _times, "reductions": _reductions, "reduction curve": _reduction_curve, "time curve": _time_curve}
    draw = part.one_of("kind", kinds, "times")
    axis, rotation = part.text("axis"), part.number("rotation", 0.0)
    # Bars beside each other are of settings that count.
    shown = [
        one for one in settings if (not one.variant or draw is _reductions) and not (settings[one] and draw is _times)
    ]
    variants = part.texts("variants") or tuple(joined(one.variant, settings[one]) for one in shown)
    labels = part.texts("labels") or tuple(joined(one.name, one.variant) for one in shown)
    at = part.numbers("at") or (0.0,) * len(shown)
    for key, found in (("variants", variants), ("labels", labels), ("at", at)):
        if len(found) != len(shown):
            raise part.fail(key, f"has {len(found)} entries, and needs one for each of {len(shown)} settings")
    part.finish()
    parts = zip(shown, variants, labels, at, strict=True)
    places = [Place(one.name, variant, label, where) for one, variant, label, where in parts]

    def figure(evaluation: Evaluation) -> Figure:
        drawing = draw(evaluation, places, axis)
        for axes in drawing.axes if rotation else ():
            axes.tick_params(axis="x", rotation=rotation)
        return drawing

    return figure


def _times(evaluation: Evaluation, places: Sequence[Place], axis: str) -> Figure:
    """Mean completion times by setting, with the reduction over each pair of bars; a panel for each average."""
    drawing, panels = plots.figure(len(AVERAGES), width_inches=plots.PAGE_INCHES)
    for axes, average in zip(panels, AVERAGES, strict=True):
        bars = [
            Bars.of_rows(scheme, look, [place.row(evaluation, FCT, scheme, average) for place in places])
            for scheme, look in SCHEMES.items()
        ]
        plots.grouped_bars(axes, [place.label for place in places], bars)
        cuts = [place.row(evaluation, REDUCTION, RC3, average).value for place in places]
        plots.reductions_above(axes, cuts, bars)
        axes.set_xlabel(axis)
        axes.set_ylabel(f"completion time,\n{average} (s)")
        plots.legend_above(axes, 3)
    return drawing


def _reductions(evaluation: Evaluation, places: Sequence[Place], axis: str) -> Figure:
    """The reductions of all settings, also of those that are varied."""
    drawing, [axes] = plots.figure(width_inches=plots.PAGE_INCHES)
    bars = [Bars.of_rows(average, look, _cuts(evaluation, places, average)) for average, look in LOOKS.items()]
    plots.grouped_bars(axes, [place.label for place in places], bars)
    axes.tick_params(axis="x", labelsize=6)
    _finish(axes, axis, REDUCTION_LABEL, 3)
    return drawing


def _reduction_curve(evaluation: Evaluation, places: Sequence[Place], axis: str) -> Figure:
    """The reduction against a number, with a line at the paper's where it prints one for all."""
    drawing, [axes] = plots.figure()
    at = [place.at for place in places]
    for average, look in LOOKS.items():
        rows = _cuts(evaluation, places, average)
        plots.points(axes, average, look, at, rows)
        if rows[0].paper is not None:
            axes.axhline(rows[0].paper, color=look.ink, linestyle=":", linewidth=1.0, label=f"paper, {average}")
    axes.set_xscale("log")
    axes.set_xticks(at, [place.label for place in places], minor=False)
    axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
    axes.minorticks_off()
    _finish(axes, axis, REDUCTION_LABEL, 2)
    return drawing


def _time_curve(evaluation: Evaluation, places: Sequence[Place], axis: str) -> Figure:
    """Mean completion times against a number, beside the paper's; a panel for each average."""
    drawing, panels = plots.figure(len(AVERAGES), width_inches=plots.PAGE_INCHES)
    at = [place.at for place in places]
    for axes, average in zip(panels, AVERAGES, strict=True):
        for scheme, look in SCHEMES.items():
            rows = [place.row(evaluation, FCT, scheme, average) for place in places]
            plots.points(axes, scheme, look, at, rows)
            plots.crosses(axes, at, rows, label=scheme == RC3)
        axes.set_ylim(bottom=0.0)
        _finish(axes, axis, f"completion time,\n{average} (s)", 3)
    return drawing


def _cuts(evaluation: Evaluation, places: Sequence[Place], average: str) -> list[Row]:
    return [place.row(evaluation, REDUCTION, RC3, average) for place in places]


def _finish(axes: Axes, axis: str, label: str, columns: int) -> None:
    axes.set_xlabel(axis)
    axes.set_ylabel(label)
    plots.legend_above(axes, columns)

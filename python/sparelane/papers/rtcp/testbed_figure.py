"""The figure of the testbed on Linux: a column for each setting, and a row for each quantity."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sparelane.papers.engine.rows import Evaluation, Key, Row
from sparelane.papers.rtcp.testbed_runs import EACH_ON_BOTH, SETTINGS, Run, Setting
from sparelane.reports import plots

COLUMN_INCHES = 1.85
LABELS_INCHES = 0.5
# Of every row: what its panels show, and whether on a logarithmic axis.
QUANTITIES: tuple[tuple[str, Callable[[Run], Key], bool], ...] = (
    ("urgent flows,\n99th percentile (ms)", lambda run: run.percentile("urgent", 99), True),
    ("high-volume flows,\n99th percentile (ms)", lambda run: run.percentile("high-volume", 99), True),
    ("goodput (Mb/s)", lambda run: run.goodput, False),
)


def draw(evaluation: Evaluation) -> Figure:
    """Times of both classes and goodput of each scheme: on Linux, there with each segment acknowledged, and here."""
    settings = [one for one in SETTINGS if any(row.key.setting == one.name for row in evaluation.rows)]
    size = LABELS_INCHES + COLUMN_INCHES * len(settings), 0.85 * plots.HEIGHT_INCHES * len(QUANTITIES)
    drawing = Figure(figsize=size, layout="constrained")
    panels = drawing.subplots(len(QUANTITIES), len(settings), sharey="row", squeeze=False)
    for (label, key_of, is_wide), row in zip(QUANTITIES, panels, strict=True):
        numbers = [
            _panel(axes, evaluation, setting, key_of, is_wide) for axes, setting in zip(row, settings, strict=True)
        ]
        known = [number for found in numbers for number in found]
        if is_wide and known:
            row[0].set_ylim(min(known) / 1.6, max(known) * 1.6)
        row[0].set_ylabel(label)
    for axes, setting in zip(panels[0], settings, strict=True):
        axes.set_title(setting.name.replace(", ", "\n", 1))
    drawing.legend(*panels[0][-1].get_legend_handles_labels(), loc="outside upper left", ncols=3)
    return drawing


def _panel(
    axes: Axes, evaluation: Evaluation, setting: Setting, key_of: Callable[[Run], Key], is_wide: bool
) -> Sequence[float]:
    """One quantity of a setting; returns the numbers that are in it."""
    keys = [key_of(Run(setting, scheme)) for scheme in setting.schemes]
    plain = [evaluation.find(key) for key in keys]
    known = {row.key: row for row in evaluation.rows}
    varied = [known.get(replace(key, variant=EACH_ON_BOTH)) for key in keys]
    series = [
        _bars("Linux", plots.TCP, keys, [row.paper for row in plain]),
        _bars(EACH_ON_BOTH, plots.THIRD, keys, [row.paper if row else None for row in varied]),
        plots.Bars.of_rows("simulator", plots.RC3, [replace(row, paper=None) for row in plain]),
    ]
    (plots.grouped_points if is_wide else plots.grouped_bars)(axes, list(setting.schemes), series)
    return [number for bars in series for number in bars.heights if number]


def _bars(label: str, look: plots.Look, keys: Sequence[Key], numbers: Sequence[float | None]) -> plots.Bars:
    return plots.Bars.of_rows(label, look, [Row(key, None, number) for key, number in zip(keys, numbers, strict=True)])

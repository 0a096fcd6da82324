"""Tests of the figures of experiments, drawn from the saved results."""

from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import Collection
from matplotlib.container import BarContainer, ErrorbarContainer
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from sparelane.papers import registry
from sparelane.papers.engine import saved
from sparelane.reports import plots

RESULTS = Path(__file__).parents[1] / "results"

# A resolution at which rounding hardly changes the widths of letters.
SHARP_DPI = 300


@cache
def results() -> dict[str, saved.Saved]:
    return {one.experiment.id: one for one in saved.read_all(RESULTS, registry())[0]}


def drawn(id: str) -> Figure:
    """Draws the figure of experiment `id`."""
    if id not in results():
        pytest.skip("no results of it are kept")
    with plots.style():
        drawing = registry()[id].draw(results()[id].evaluation)
    drawing.dpi = SHARP_DPI
    return drawing


def appearance(shown: Artist | BarContainer | ErrorbarContainer) -> str:
    """Returns the colours, marks and shapes by which a reader distinguishes `shown`."""
    match shown:
        case BarContainer():
            return appearance(shown.patches[0])
        case ErrorbarContainer():
            return appearance(shown.lines[0] or shown.lines[2][0])
        case Line2D():
            return f"{shown.get_color()} {shown.get_linestyle()} {shown.get_marker()}"
        case Patch():
            return f"{shown.get_facecolor()} {shown.get_hatch()}"
        case Collection():
            return f"{shown.get_facecolor()} {shown.get_edgecolor()} {shown.get_paths()[0].vertices}"
        case _:
            raise AssertionError(f"{shown} in a legend")


def collisions(axes: Axes) -> list[tuple[str, str]]:
    """Returns adjacent labels of the horizontal axis that overlap."""
    shown = [label for label in axes.get_xticklabels() if label.get_visible() and label.get_text()]
    places = sorted(((label.get_window_extent(), label) for label in shown), key=lambda place: place[0].x0)
    return [
        (left.get_text(), right.get_text())
        for (left_box, left), (right_box, right) in pairwise(places)
        if not left.get_rotation() and left_box.overlaps(right_box)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("id", registry())
def test_everything_in_a_panel_looks_different_and_is_in_a_legend(id: str) -> None:
    drawing = drawn(id)
    legends = [axes.get_legend() for axes in drawing.axes] + drawing.legends
    named = {text.get_text() for legend in legends if legend is not None for text in legend.get_texts()}
    for axes in drawing.axes:
        handles, labels = axes.get_legend_handles_labels()
        assert set(labels) <= named
        looks = dict(zip(labels, map(appearance, handles), strict=True))
        assert len(set(looks.values())) == len(looks), looks


@pytest.mark.slow
@pytest.mark.parametrize("id", registry())
def test_labels_of_a_horizontal_axis_do_not_overlap(id: str) -> None:
    drawing = drawn(id)
    with plots.style():
        drawing.draw_without_rendering()
    assert [found for axes in drawing.axes for found in collisions(axes)] == []

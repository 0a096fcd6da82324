"""The figures of the experiments, drawn from the results that are kept with them."""

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

# So fine that the widths of letters are hardly rounded.
SHARP_DPI = 300


@cache
def results() -> dict[str, saved.Saved]:
    return {one.experiment.id: one for one in saved.read_all(RESULTS, registry())[0]}


def drawn(id: str) -> Figure:
    """The figure of experiment `id`."""
    if id not in results():
        pytest.skip("no results of it are kept")
    with plots.style():
        drawing = registry()[id].draw(results()[id].evaluation)
    drawing.dpi = SHARP_DPI
    return drawing


def look(shown: Artist | BarContainer | ErrorbarContainer) -> str:
    """By what a reader tells `shown` from others in its panel."""
    match shown:
        case BarContainer():
            return look(shown.patches[0])
        case ErrorbarContainer():
            return look(shown.lines[0] or shown.lines[2][0])
        case Line2D():
            return f"{shown.get_color()} {shown.get_linestyle()} {shown.get_marker()}"
        case Patch():
            return f"{shown.get_facecolor()} {shown.get_hatch()}"
        case Collection():
            return f"{shown.get_facecolor()} {shown.get_edgecolor()} {shown.get_paths()[0].vertices}"
        case _:
            raise AssertionError(f"{shown} in a legend")


def collisions(axes: Axes) -> list[tuple[str, str]]:
    """Neighbours among the labels of the horizontal axis that lie on each other."""
    shown = [label for label in axes.get_xticklabels() if label.get_visible() and label.get_text()]
    places = sorted(((label.get_window_extent(), label) for label in shown), key=lambda place: place[0].x0)
    return [
        (left.get_text(), right.get_text())
        for (left_box, left), (right_box, right) in pairwise(places)
        if not left.get_rotation() and left_box.overlaps(right_box)
    ]


@pytest.mark.parametrize("id", registry())
def test_what_a_panel_shows_looks_different_and_is_named_in_a_legend(id: str) -> None:
    drawing = drawn(id)
    legends = [axes.get_legend() for axes in drawing.axes] + drawing.legends
    named = {text.get_text() for legend in legends if legend is not None for text in legend.get_texts()}
    for axes in drawing.axes:
        handles, labels = axes.get_legend_handles_labels()
        assert set(labels) <= named
        looks = dict(zip(labels, map(look, handles), strict=True))
        assert len(set(looks.values())) == len(looks), looks


@pytest.mark.parametrize("id", registry())
def test_labels_of_a_horizontal_axis_do_not_lie_on_each_other(id: str) -> None:
    drawing = drawn(id)
    with plots.style():
        drawing.draw_without_rendering()
    assert [found for axes in drawing.axes for found in collisions(axes)] == []

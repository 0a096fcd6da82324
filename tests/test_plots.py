"""Tests of the order in which figures draw marks."""

from matplotlib.container import BarContainer
from matplotlib.lines import Line2D

from sparelane.papers.engine.rows import Key, Metric, Row
from sparelane.reports import plots

ROW = Row(Key("30%", Metric("reduction", "%")), 43.5, 43.5, 0.5)


def crosses(lines: list[Line2D]) -> Line2D:
    [found] = [line for line in lines if line.get_label() == plots.PAPER_LABEL]
    return found


def test_the_papers_crosses_do_not_hide_our_points() -> None:
    _, [axes] = plots.figure()
    plots.points(axes, "ours", plots.RC3, [0.0], [ROW])
    plots.crosses(axes, [0.0], [ROW])
    cross = crosses(list(axes.get_lines()))
    others = [line for line in axes.get_lines() if line is not cross]
    assert others
    assert all(line.get_zorder() > cross.get_zorder() for line in others)


def test_the_papers_crosses_are_drawn_over_bars_and_under_intervals() -> None:
    _, [axes] = plots.figure()
    plots.grouped_bars(axes, ["30%"], [plots.Bars.of_rows("RC3", plots.RC3, [ROW])])
    cross = crosses(list(axes.get_lines()))
    bars = [patch for held in axes.containers if isinstance(held, BarContainer) for patch in held.patches]
    assert bars
    assert all(patch.get_zorder() < cross.get_zorder() for patch in bars)
    assert all(spread.get_zorder() > cross.get_zorder() for spread in axes.collections)


def test_the_effort_is_above_the_panels_of_a_figure() -> None:
    drawing, _ = plots.figure()
    plots.say_effort(drawing, "quick, 1 seed")
    assert drawing.get_suptitle() == "quick, 1 seed"

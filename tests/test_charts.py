"""Tests of figures of runs and sweeps, and of results in notebooks and after pickling."""

import json
import os
import pickle
from pathlib import Path

import pytest

import sparelane as sl
from command_line import invoke
from small_sweeps import BASE, LOADS, do
from sparelane import _native
from sparelane.common.folders import OutputError, SavedResultsError
from sparelane.common.units import quantity, scale
from sparelane.reports.charts import draw, of_run, of_sweep
from sparelane.reports.charts.panel import Line, Panel, own_ticks, thinned, with_looks
from sparelane.simulation import simulate
from sparelane.sweeps import folder

SAMPLED = BASE.replace(
    "[queue]",
    '[sample]\ninterval = "5ms"\nflows = [0, 1]\nqueues = [["west", "east"]]\nlinks = [["west", "east"]]\n\n[queue]',
).replace("load = 0.5", 'load = 0.5\nscheme = "rc3"')
ENDLESS = SAMPLED.split("[workload]")[0] + '[workload]\nkind = "bulk"\nscheme = "tcp"\n'

SIGNATURES = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("run")
    sl.run(SAMPLED.replace("100ms", "500ms")).save(place)
    return place


@pytest.fixture(scope="module")
def sweep_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("sweep")
    do(LOADS.replace('{ kind = "fixed", size = "10kB" }', '{ kind = "rc3" }').replace("100ms", "2s"), place, seeds=3)
    return place


def test_a_run_has_panels_of_samples_and_of_completion_times(run_folder: Path) -> None:
    panels = {panel.name: panel for panel in of_run.panels([of_run.read(run_folder)])}
    assert {"window", "rtt", "queue", "links", "cdf"} <= set(panels)
    assert [line.label for line in panels["window"].lines] == ["flow 0 (rc3)", "flow 1 (rc3)"]
    assert [line.label for line in panels["queue"].lines] == ["west→east"]
    assert 50 < max(panels["links"].lines[0].y) <= 100
    assert panels["cdf"].lines[0].y[-1] == 1.0


def test_unlimited_flows_have_a_panel_of_throughput() -> None:
    panels = {panel.name: panel for panel in of_run.panels([of_run.of_result(sl.run(ENDLESS))])}
    assert panels["throughput"].places == ("0", "1", "2")
    assert "completion" not in panels


@pytest.mark.parametrize(
    "ending", [pytest.param(ending, marks=[pytest.mark.slow] if ending != "png" else []) for ending in draw.FORMATS]
)
def test_plot_writes_each_format(run_folder: Path, sweep_folder: Path, tmp_path: Path, ending: str) -> None:
    for place in (run_folder, sweep_folder):
        target = tmp_path / f"{place.name}.{ending}"
        result = invoke("plot", place, "-o", target)
        assert result.exit_code == 0, result.output
        assert target.read_bytes().startswith(SIGNATURES[ending])


def test_equal_figures_are_equal_files(run_folder: Path, tmp_path: Path) -> None:
    for name in ("a.png", "b.png"):
        invoke("plot", run_folder, "--only", "queue", "-o", tmp_path / name)
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


def test_plot_writes_into_the_folder_by_default(run_folder: Path) -> None:
    assert invoke("plot", run_folder).exit_code == 0
    assert (run_folder / "plot.png").exists()


def test_plot_draws_several_runs_together(run_folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    sl.run(SAMPLED, set={"workload.scheme": "tcp"}).save(other, formats=("csv",))
    result = invoke("plot", run_folder, other, "-o", tmp_path / "both.svg", "--only", "cdf")
    assert result.exit_code == 0, result.output
    text = (tmp_path / "both.svg").read_text()
    assert f"{os.path.relpath(other, tmp_path.parent)}: tcp" in text


@pytest.mark.parametrize("format", ["parquet", "csv", "json"])
def test_runs_are_read_in_every_format(tmp_path: Path, format: str) -> None:
    sl.run(SAMPLED).save(tmp_path, formats=(format,))
    names = {panel.name for panel in of_run.panels([of_run.read(tmp_path)])}
    assert {"window", "rtt", "queue", "links", "cdf"} <= names


def test_every_panel_has_a_legend_and_lines_that_differ_without_colour(sweep_folder: Path) -> None:
    panels = with_looks(of_sweep.panels(folder.read(sweep_folder)))
    drawing = draw.figure(panels)
    assert len(panels) >= 8
    [legend] = drawing.legends
    assert {text.get_text() for text in legend.get_texts()} == {line.label for one in panels for line in one.lines}
    for panel in panels:
        styles = [(line.look.marker, line.look.dashes) for line in panel.lines]
        assert len(set(styles)) == len(styles)
    looks = {(line.label, line.look) for panel in panels for line in panel.lines}
    assert len(looks) == len({label for label, _ in looks})


def test_a_sweep_is_drawn_along_its_key_with_intervals(sweep_folder: Path) -> None:
    panels = {panel.name: panel for panel in of_sweep.panels(folder.read(sweep_folder))}
    tcp, rc3 = panels["completion"].lines
    assert (tcp.label, rc3.label) == ("tcp", "rc3")
    assert list(tcp.x) == [0.3, 0.6]
    assert all(low <= y <= high for low, y, high in zip(tcp.low, tcp.y, tcp.high, strict=True))
    assert panels["completion"].x_label == "load"
    assert {"completion-by-size", "slowdown-by-size", "cdf", "cdf-slowdown"} <= set(panels)


def test_a_sweep_of_schemes_only_has_a_tick_for_each(tmp_path: Path) -> None:
    do(BASE, tmp_path, seeds=2)
    panels = {panel.name: panel for panel in of_sweep.panels(folder.read(tmp_path))}
    assert panels["completion"].places == ("tcp", "rc3")


def test_values_with_units_are_at_their_numbers_on_the_axis(tmp_path: Path) -> None:
    text = BASE.replace('bottleneck_rate = "20Mbps"', 'bottleneck_rate = ["10Mbps", "1Gbps"]')
    do(text, tmp_path)
    panel = of_sweep.panels(folder.read(tmp_path))[0]
    assert (panel.x_label, panel.is_x_log) == ("bottleneck rate (Gbit/s)", True)
    assert list(panel.lines[0].x) == [0.01, 1.0]


# Arguments of the command, and a part of the message.
MISTAKES = [
    (("nowhere",), "does not exist"),
    (("empty",), "which is empty"),
    (("other",), "no results in the folder"),
    (("file",), "is not a folder"),
    (("run", "-o", "x.gif"), "allowed: files ending in .png, .svg or .pdf"),
    (("run", "-o", "/nowhere/x.png"), "cannot write the file"),
    (("run", "--only", "windw"), 'there is no panel "windw"; did you mean "window"?'),
    (("run", "--x", "load"), "--x is for sweeps"),
    (("sweep", "--x", "laod"), 'there is no key that varies "laod"'),
    (("sweep", "run"), "a figure shows one sweep"),
    (("broken",), "does not describe a run"),
    (("old",), "holds results of sparelane 0.0.1; this is"),
    (("quiet",), "there is nothing to draw"),
]


@pytest.mark.parametrize(("arguments", "message"), MISTAKES, ids=[" ".join(arguments) for arguments, _ in MISTAKES])
def test_a_figure_that_cannot_be_drawn_is_one_clear_error(
    tmp_path: Path, run_folder: Path, sweep_folder: Path, arguments: tuple[str, ...], message: str
) -> None:
    for name in ("empty", "other", "broken", "old"):
        (tmp_path / name).mkdir()
    (tmp_path / "other" / "notes.txt").write_text("no results")
    (tmp_path / "file").write_text("")
    (tmp_path / "broken" / "run.json").write_text("{")
    (tmp_path / "old" / "run.json").write_text('{"version": "0.0.1", "totals": {"end_s": 1}}')
    sl.run(SAMPLED, set={"sample.flows": [99], "sample.queues": [], "sample.links": [], "duration": "1us"}).save(
        tmp_path / "quiet"
    )
    folders = {"run": run_folder, "sweep": sweep_folder}
    given = [folders.get(one, tmp_path / one if one in _folders() else one) for one in arguments]
    result = invoke("plot", *given)
    assert (result.exit_code, message in result.stderr) == (2, True), result.output


def _folders() -> set[str]:
    return {"nowhere", "empty", "other", "file", "broken", "old", "quiet"}


def test_a_result_is_equal_after_pickling() -> None:
    result = sl.run(SAMPLED)
    again = pickle.loads(pickle.dumps(result))
    assert (again.digest, again.seed, again.scenario, again.totals) == (
        result.digest,
        result.seed,
        result.scenario,
        result.totals,
    )
    for name in ("flows", "links", "drops", "series", "delays", "packets", "cross_traffic", "requests"):
        assert getattr(again, name).equals(getattr(result, name)), name
    assert again.warnings == result.warnings
    assert pickle.loads(pickle.dumps(again)).flows.equals(result.flows)


@pytest.mark.parametrize("answer", [False, 0])
def test_a_stopped_result_stays_marked_after_pickling_and_saving(tmp_path: Path, answer: object) -> None:
    prepared = simulate.prepare("dumbbell-cubic", set=["duration=50000s", "sample.interval=10s"])
    stopped = prepared.run(lambda share: answer, keep=True)
    again = pickle.loads(pickle.dumps(stopped))
    assert stopped.is_interrupted
    assert again.is_interrupted
    again.save(tmp_path)
    assert json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))["interrupted"] is True
    whole = pickle.loads(pickle.dumps(sl.run("dumbbell-cubic", set=["duration=1s"])))
    assert not whole.is_interrupted


def test_notebooks_show_results_and_plots(tmp_path: Path) -> None:
    result = sl.run(SAMPLED)
    shown = result._repr_html_()
    assert result.digest[:12] in shown
    assert shown.count("<table") == 4
    plot = result.plot("window", "queue")
    assert plot.names == ("window", "queue")
    assert plot._repr_png_().startswith(SIGNATURES["png"])
    plot.save(tmp_path / "x.pdf")
    assert (tmp_path / "x.pdf").read_bytes().startswith(SIGNATURES["pdf"])
    with pytest.raises(sl.UnknownNameError, match="did you mean"):
        result.plot("windows")
    with pytest.raises(OutputError):
        plot.save(tmp_path / "x.doc")
    with pytest.raises(SavedResultsError, match="nothing to draw"):
        sl.run(BASE, set={"duration": "1us", "workload.scheme": "tcp"}).plot()


def along(*lines: Line) -> Panel:
    return Panel("x", "X", "load", "use (%)", lines)


def test_a_legend_has_the_order_of_the_lines_whether_or_not_they_have_intervals() -> None:
    lines = [
        Line("a", [0.5, 2.0], [1.0, 2.0], [0.5, 1.5], [1.5, 2.5], is_marked=True),
        Line("b", [0.5, 2.0], [2.0, 1.0], is_marked=True),
        Line("c", [0.5, 2.0], [2.0, 3.0], [1.5, 2.5], [2.5, 3.5], is_marked=True),
    ]
    drawing = draw.figure([along(*lines)])
    legend = drawing.axes[0].get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["a", "b", "c"]


def test_few_values_along_an_axis_are_its_ticks_and_the_label_of_equal_ones_is_below() -> None:
    drawing = draw.figure([along(Line("a", [0.5, 2.0], [99.5, 99.5], is_marked=True))])
    axes = drawing.axes[0]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["0.5", "2"]
    assert axes.get_ylim()[0] == 0.0
    assert axes.get_ylim()[1] > 102
    # Values are not ticks if there are many, or if they are close together.
    assert own_ticks(along(Line("a", range(9), range(9), is_marked=True))) == []
    assert own_ticks(along(Line("a", [0.01, 0.02, 1.0], [1.0, 1.0, 1.0], is_marked=True))) == []


def test_error_bars_are_explained_if_there_are_any(sweep_folder: Path, tmp_path: Path) -> None:
    do(LOADS, tmp_path / "one")
    for place, has_bars in ((sweep_folder, True), (tmp_path / "one", False)):
        panels = of_sweep.panels(folder.read(place))
        assert any("intervals over seeds" in panel.note for panel in panels) == has_bars


def test_a_line_of_many_points_keeps_its_peaks() -> None:
    import numpy as np

    x = np.arange(100_000.0)
    y = np.zeros(100_000)
    y[54_321], y[77_777] = 9.0, -9.0
    some_x, some_y = thinned(x, y)
    assert len(some_x) == len(some_y) <= 1500
    assert (max(some_y), min(some_y)) == (9.0, -9.0)
    assert some_x == sorted(some_x)


def test_a_line_without_points_is_drawn_as_nothing() -> None:
    panel = Panel("x", "X", "x", "y", [Line("a", [], [])], is_x_log=True, is_y_log=True)
    assert draw.figure([panel]).axes


def test_numbers_have_fitting_units() -> None:
    assert [quantity(0.0123, "s"), quantity(2.5e6, "bit/s"), quantity(1.234, "%"), quantity(0.0, "B")] == [
        "12.3 ms",
        "2.5 Mbit/s",
        "1.23 %",
        "0 B",
    ]
    assert [*map(_native.quantity, ("10Mbps", "1.5ms", "0.5bdp", "30%", "fifo", "7 x"))] == [
        (1e7, "bit/s"),
        (0.0015, "s"),
        (0.5, "bdp"),
        (0.3, ""),
        None,
        None,
    ]
    assert scale(0.0, "s") == (1.0, "s")

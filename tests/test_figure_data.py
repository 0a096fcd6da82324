"""Tests of the data in figures: positions, reference lines, colours and omissions."""

import math
import re
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import browser
import sparelane as sl
from command_line import invoke
from small_sweeps import do, with_lines
from sparelane.common import percentiles
from sparelane.common.folders import SavedResultsError
from sparelane.common.names import UnknownNameError
from sparelane.reports.charts import draw, of_run, of_sweep, over_time, scatter
from sparelane.reports.charts.panel import MOST_POINTS, Line, Panel, offsets, with_looks
from sparelane.reports.charts.plot import choose
from sparelane.reports.pages import horizontal, svg
from sparelane.reports.pages.document import document, figures
from sparelane.sweeps import folder

ENDLESS = with_lines(
    (
        'kind = "poisson"\nload = 0.5\nload_on = "busiest-core"\nsizes = { kind = "fixed", size = "10kB" }',
        'kind = "bulk"',
    ),
    ('duration = "100ms"', 'duration = "1s"'),
    ("[scheme.rc3]", '[scheme.vegas]\ncontroller = "vegas"\n\n[scheme.rc3]'),
    ('controller = "rc3"', 'controller = "cubic"\nbeta = [0.5, 0.7]'),
)
SAMPLED = with_lines(
    (
        'kind = "poisson"\nload = 0.5\nload_on = "busiest-core"\nsizes = { kind = "fixed", size = "10kB" }',
        'kind = "bulk"',
    ),
    ('duration = "100ms"', 'duration = "1s"'),
    ("[workload]", "[workload]\nmix = { tcp = 0.5, rc3 = 0.5 }"),
    (
        "[queue]",
        '[sample]\ninterval = "5ms"\nflows = [0, 1, 2]\nqueues = [["west", "east"]]\nlinks = [["west", "east"]]\n\n'
        "[measure]\ndelays = true\n\n[queue]",
    ),
)


def named(panels: list[Panel]) -> dict[str, Panel]:
    return {panel.name: panel for panel in panels}


@pytest.fixture(scope="module")
def own_keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sweep with a key of one scheme, a key of all schemes, and several seeds."""
    place = tmp_path_factory.mktemp("own")
    text = ENDLESS.replace('kind = "priority"', 'kind = ["priority", "codel"]').replace('limit = "1bdp"\n', "")
    do(text, place, seeds=3)
    return place


def five_lines(**details: object) -> Panel:
    lines = [
        Line(f"scheme {number}", [1.0, 4.0, 16.0, 64.0], [1, 2, 3, 4], [0.5, 1, 2, 3], [2, 3, 4, 5], is_marked=True)
        for number in range(5)
    ]
    return with_looks([Panel("x", "X", "rate", "y", lines, **details)])[0]  # type: ignore[arg-type]


@pytest.mark.parametrize("is_log", [True, False])
def test_markers_on_a_numerical_axis_are_at_their_numbers_and_within_the_axes(is_log: bool) -> None:
    drawing = draw.figure([five_lines(is_x_log=is_log)])
    axes = drawing.axes[0]
    drawing.draw_without_rendering()
    frame = axes.get_window_extent()
    marked = [one for one in axes.lines if one.get_marker() in tuple("os^Dv")]
    assert len(marked) == 5
    for one in marked:
        at = one.get_transform().transform(one.get_xydata())
        assert at == pytest.approx(axes.transData.transform([(1, 1), (4, 2), (16, 3), (64, 4)]))
        assert ((frame.x0 <= at[:, 0]) & (at[:, 0] <= frame.x1)).all()


def test_markers_in_a_page_are_at_their_numbers() -> None:
    _, points = svg._drawing(five_lines(is_x_log=True), 1)
    assert len({str([x for x, _ in line["at"]]) for line in points}) == 1  # type: ignore[attr-defined]


@pytest.mark.parametrize("count", [2, 5, 14])
def test_markers_side_by_side_stay_within_their_category(count: int) -> None:
    lines = [Line(f"{one}", [0.0, 1.0], [1.0, 2.0], is_marked=True, is_joined=False) for one in range(count)]
    panel = Panel("x", "X", "queue", "y", lines, places=("fifo", "codel"))
    found = offsets(panel)
    assert len(set(found)) == count
    assert max(map(abs, found)) < 0.5
    assert draw.figure([panel]).axes[0].get_xlim() == (-0.5, 1.5)


def test_a_scheme_alone_in_its_category_is_in_the_middle() -> None:
    names = tuple(f"scheme {number}" for number in range(14))
    lines = [Line(name, [float(place)], [1.0], is_marked=True) for place, name in enumerate(names)]
    panel = Panel("x", "X", "", "y", lines, places=names, is_horizontal=True)
    assert offsets(panel) == [0.0] * 14
    heights = [line["at"][0][1] for line in horizontal.drawing(panel, 1)[1]]  # type: ignore[index]
    assert np.diff(heights) == pytest.approx(np.full(13, horizontal.ROW))
    axes = draw.figure([panel]).axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == list(names)


def test_a_scheme_without_the_swept_key_is_a_reference_line(own_keys: Path) -> None:
    panel = named(of_sweep.panels(folder.read(own_keys), "beta"))["throughput"]
    assert panel.x_label == "beta"
    levels = [line for line in panel.lines if line.is_level]
    assert {line.group for line in levels} == {"tcp", "vegas"}
    for line in panel.lines:
        assert line.is_level == math.isnan(line.x[0])
        assert line.is_level or list(line.x) == [0.5, 0.7]
    axes = draw.figure([panel]).axes[0]
    low, high = axes.get_xlim()
    assert low > 0.4
    assert high < 0.8
    _, points = svg._drawing(panel, 1)
    texts = {text for line, one in zip(points, panel.lines, strict=True) if one.is_level for text in line["texts"]}  # type: ignore[attr-defined]
    assert all(text.startswith("any beta; ") for text in texts)


def test_nominal_settings_are_not_joined(own_keys: Path) -> None:
    panel = named(of_sweep.panels(folder.read(own_keys), "queue.kind"))["throughput"]
    assert panel.places == ("priority", "codel")
    assert not any(line.is_joined for line in panel.lines)


def test_a_scheme_has_one_colour_in_all_panels(own_keys: Path) -> None:
    saved = folder.read(own_keys)
    colours = defaultdict(set)
    for key in ("beta", "queue.kind"):
        for panel in with_looks(of_sweep.panels(saved, key)):
            for line in panel.lines:
                colours[line.group].add(line.look.colour)
    assert set(colours) == {"tcp", "vegas", "rc3"}
    assert all(len(some) == 1 for some in colours.values())
    assert len(set.union(*colours.values())) == 3


def test_lines_differ_in_every_panel_even_if_schemes_repeat(own_keys: Path) -> None:
    for panel in with_looks(of_sweep.panels(folder.read(own_keys), "beta")):
        looks = [line.look for line in panel.lines]
        assert len(set(looks)) == len(looks), panel.name


def test_where_selects_lines_and_refuses_keys_that_do_not_vary(own_keys: Path, tmp_path: Path) -> None:
    saved = folder.read(own_keys)
    panels = of_sweep.panels(saved, "beta", ("queue.kind=codel", "scheme=rc3", "scheme=tcp"))
    assert [line.label for line in named(panels)["throughput"].lines] == ["tcp", "rc3"]
    assert "codel" in panels[0].title
    for condition, error in (
        ("kind=red", UnknownNameError),
        ("limit=1bdp", UnknownNameError),
        ("scheme=bbr", UnknownNameError),
        ("queue.kind", SavedResultsError),
        ("queue.kind=", SavedResultsError),
    ):
        with pytest.raises(error):
            of_sweep.panels(saved, None, (condition,))
    result = invoke("plot", own_keys, "--where", "kind=codel", "-o", tmp_path / "x.svg")
    assert result.exit_code == 0, result.output


def test_a_note_states_what_a_panel_omits(tmp_path: Path) -> None:
    loads = ", ".join(f"0.{number}" for number in range(1, 8))
    delays = ", ".join(f'"{number}ms"' for number in range(1, 7))
    text = with_lines(("load = 0.5", f"load = [{loads}]"), ('access_delay = "1ms"', f"access_delay = [{delays}]"))
    do(text, tmp_path)
    panel = named(of_sweep.panels(folder.read(tmp_path)))["completion"]
    assert len(panel.lines) == 8
    assert "Shown are 8 of 12 lines" in panel.note
    assert "access_delay" in panel.note


def test_panels_over_time_share_their_axis() -> None:
    panels = named(of_run.panels([of_run.of_result(sl.run(SAMPLED))]))
    over = [panel for panel in panels.values() if panel.is_over_time]
    assert [panel.name for panel in over] == ["window", "rtt", "queue", "throughput-time", "links"]
    assert {panel.x_range for panel in over} == {(0.0, 1.0)}
    axes = draw.figure(list(panels.values())).axes[:5]
    assert {one.get_xlim() for one in axes} == {(0.0, 1.0)}
    assert {round(one.get_position().x0, 6) for one in axes} == {round(axes[0].get_position().x0, 6)}


@pytest.mark.parametrize("interval", ["50us", "700us", "5ms", "100ms"])
def test_links_are_never_used_beyond_their_rate(interval: str) -> None:
    run = of_run.of_result(sl.run(SAMPLED, set={"sample.interval": interval}))
    [line] = named(of_run.panels([run]))["links"].lines
    assert 0 <= min(line.y) <= max(line.y) <= 100
    # No bytes are lost: the mean utilisation equals that in the table of links.
    sent = run.links.filter((pl.col("from") == "west") & (pl.col("to") == "east"))["sent_bytes"][0]
    if len(line.x) <= MOST_POINTS:
        used = np.sum(np.diff(line.x) * np.array(line.y[:-1])) / 100 * 20e6 / 8
        until = run.series.filter(pl.col("quantity") == "sent_bytes")["value"].sum()
        assert used == pytest.approx(until)
        assert until <= sent


def test_a_packet_counts_during_its_transmission() -> None:
    # 1500 bytes at 12 Mb/s take 1 ms. With samples every 0.25 ms, a packet is counted in the sample of its last bit.
    time = np.linspace(0.0, 25e-3, 101)
    arrived = np.zeros(101)
    arrived[4::4] = 1500.0
    sent = over_time.carried(time, arrived, 12e6 / 8 * time, 1500.0)
    assert sent.use == pytest.approx(np.ones(len(sent.use)))
    assert (sent.edges[0], sent.edges[-1]) == (0.0, time[-1])


def test_a_rate_above_that_of_the_table_of_links_is_shown_as_it_is() -> None:
    time = np.linspace(0.0, 10.0, 101)
    arrived = np.full(101, 2 * 12e6 / 8 * 0.1)
    arrived[0] = 0.0
    use = over_time.carried(time, arrived, 12e6 / 8 * time, 1500.0).use
    assert use == pytest.approx(np.full(len(use), 2.0))


def test_a_queue_waits_for_as_long_as_its_link_takes() -> None:
    # 1000 bytes per second, then an outage of two seconds, then 4000 bytes per second.
    time = np.arange(0.0, 6.0)
    offered = np.array([0.0, 1000.0, 1000.0, 1000.0, 5000.0, 9000.0])
    backlog = np.array([500.0, 2000.0, 2000.0, 0.0, 1000.0, 1.0])
    delay = over_time.queue_delay(time, backlog, offered)
    assert delay[:5] == pytest.approx([0.5, 2.5, 1.5, 0.0, 0.25])
    assert math.isnan(delay[5])


def test_a_link_that_cannot_send_has_no_use() -> None:
    time = np.arange(0.0, 5.0)
    offered = np.array([0.0, 0.0, 0.0, 3e6, 6e6])
    sent = over_time.carried(time, np.array([0.0, 0.0, 0.0, 3e6, 1.5e6]), offered, 1500.0)
    assert np.isnan(sent.use[:2]).all()
    assert sent.use[2:] == pytest.approx([1.0, 0.5])
    assert sent.bps(sent.offered_bytes).tolist() == [0.0, 0.0, 24e6, 24e6, 24e6]


VARYING = ENDLESS.replace("beta = [0.5, 0.7]\n", "").replace(
    "[queue]",
    '[[change]]\nat = "400ms"\nbetween = ["west", "east"]\nfrom = "west"\nrate = "5Mbps"\n\n'
    '[sample]\ninterval = "5ms"\nqueues = [["west", "east"]]\nlinks = [["west", "east"], ["east", "west"]]\n\n[queue]',
)


def test_a_link_whose_rate_varies_has_panels_of_its_rates_and_of_the_delay_of_its_queue() -> None:
    result = sl.run(VARYING, set={"workload.scheme": "tcp"})
    offered = result.series.filter(pl.col("quantity") == "offered_bytes")
    # Only the direction that changes has a rate that varies: 20 Mb/s for 0.4 s, then 5 Mb/s.
    assert offered["probe"].unique().to_list() == ["west->east"]
    assert offered["value"].sum() == pytest.approx((0.4 * 20e6 + 0.6 * 5e6) / 8)
    panels = named(of_run.panels([of_run.of_result(result)]))
    rates, delay = panels["rates"], panels["queue-delay"]
    assert (rates.row, delay.row) == ("", "")
    used, area = rates.lines
    assert (area.label, area.is_filled, used.label, used.is_filled) == ("offered", True, "used", False)
    at = dict(zip(area.x, area.y, strict=True))
    assert {round(y, 3) for x, y in at.items() if x < 0.38} == {20.0}
    assert {round(y, 3) for x, y in at.items() if x > 0.41} == {5.0}
    assert all(y <= room * (1 + 1e-9) for y, room in zip(used.y, area.y, strict=True))
    sent = result.series.filter((pl.col("quantity") == "sent_bytes") & (pl.col("probe") == "west->east"))
    assert np.sum(np.diff(used.x) * np.array(used.y[:-1])) * 1e6 / 8 == pytest.approx(sent["value"].sum())
    # A queue that waits for the whole time fills the link, and each byte of it takes its time at 5 Mb/s.
    backlog = result.series.filter(pl.col("quantity") == "backlog_bytes")
    last = backlog.filter(pl.col("time_s") == 0.6)["value"][0]
    shown = {round(x, 3): y for x, y in zip(delay.lines[0].x, delay.lines[0].y, strict=True)}
    assert delay.y_label == "delay (ms)"
    assert shown[0.6] == pytest.approx(1e3 * 8 * last / 5e6)
    # Use of links is relative to the varying rate.
    [use, _] = panels["links"].lines
    assert max(use.y) == pytest.approx(100.0)


def test_runs_with_varying_rates_have_one_row_each() -> None:
    runs = [of_run.of_result(sl.run(VARYING, set={"workload.scheme": scheme}), scheme) for scheme in ("tcp", "vegas")]
    panels = [one for one in of_run.panels(runs) if one.name in ("rates", "queue-delay")]
    assert [(one.name, one.row) for one in panels] == [
        (name, f"{scheme}: west→east") for scheme in ("tcp", "vegas") for name in ("rates", "queue-delay")
    ]
    assert len({one.y_range for one in panels if one.name == "rates"}) == 1
    places = [one.get_position() for one in draw.figure(with_looks(panels)).axes]
    assert [bool(one.x0 > 0.5) for one in places] == [False, True, False, True]
    assert places[0].y0 == pytest.approx(places[1].y0)
    # Each run has a row of its own, and the choice of a panel draws that of each run.
    assert [one.name for one in choose(panels, ["rates"])] == ["rates", "rates"]
    with pytest.raises(UnknownNameError, match=r"there are: rates, queue-delay$"):
        choose(panels, ["none"])


def test_an_area_is_filled_down_to_zero_in_figures_and_pages() -> None:
    line = Line("offered", [0.0, 1.0, 2.0, 3.0], [2.0, math.nan, 4.0, 4.0], is_step=True, is_filled=True)
    panel = Panel("rates", "Rates", "time (s)", "rate", [line], is_over_time=True)
    [area] = draw.figure([panel]).axes[0].collections
    assert area.get_datalim(draw.figure([panel]).axes[0].transData).y0 == 0.0
    text = svg.figure(panel, 1)
    # One piece for each stretch with values; a stretch of one point has no area.
    assert text.count('z" fill="') == 1


def test_throughput_over_time_includes_every_delivered_byte() -> None:
    run = of_run.of_result(sl.run(SAMPLED))
    panel = named(of_run.panels([run]))["throughput-time"]
    assert panel.y_label == "throughput (Mbit/s)"
    held = run.series.filter(pl.col("quantity") == "held_bytes").group_by("probe", maintain_order=True).last()
    for line, last in zip(panel.lines, held["value"], strict=True):
        rates = np.array(line.y[:-1])
        received = np.nansum(np.diff(line.x) * rates) * 1e6 / 8
        assert received == pytest.approx(last)
        assert np.nanmax(rates) <= 20.0


def test_a_flow_has_no_throughput_before_its_start_and_after_its_end() -> None:
    text = SAMPLED.replace('kind = "bulk"\n', 'kind = "bulk"\nsize = "100kB"\n')
    run = of_run.of_result(sl.run(text))
    assert run.flows["finish_s"].max() < 0.9  # type: ignore[operator]
    panel = named(of_run.panels([run]))["throughput-time"]
    for line, flow in zip(panel.lines, run.flows.iter_rows(named=True), strict=True):
        known = [x for x, y in zip(line.x, line.y, strict=True) if not math.isnan(y)]
        assert max(known) <= flow["finish_s"]
        assert np.nansum(np.diff(line.x) * np.array(line.y[:-1])) * 1e6 / 8 == pytest.approx(100_000)


def test_many_flows_are_drawn_as_medians_with_a_band() -> None:
    flows = list(range(30))
    run = of_run.of_result(sl.run(SAMPLED, set={"topology.pairs": 30, "sample.flows": flows, "duration": "300ms"}))
    for name in ("window", "rtt", "throughput-time"):
        panel = named(of_run.panels([run]))[name]
        assert [line.group for line in panel.lines] == ["rc3", "tcp"] or [line.group for line in panel.lines] == [
            "tcp",
            "rc3",
        ]
        assert "medians over 30 sampled flows" in panel.note
        for line in panel.lines:
            assert all(low <= y <= high for low, y, high in zip(line.low, line.y, line.high, strict=True))
    assert draw.figure(list(named(of_run.panels([run])).values())).axes


def test_the_ellipse_is_the_one_sigma_contour_of_the_points() -> None:
    draws = np.random.default_rng(1).multivariate_normal((3.0, 5.0), ((0.4, 0.3), (0.3, 0.5)), 4000)
    x, y = draws.T
    around = np.array(scatter.ellipse(x, y))
    inverse = np.linalg.inv(np.cov(x, y))
    away = around - draws.mean(axis=0)
    assert np.einsum("ij,jk,ik->i", away, inverse, away) == pytest.approx(np.ones(len(away)))
    inside = np.einsum("ij,jk,ik->i", draws - draws.mean(axis=0), inverse, draws - draws.mean(axis=0)) <= 1
    assert inside.mean() == pytest.approx(1 - math.exp(-0.5), abs=0.03)


def test_points_on_a_line_have_a_flat_ellipse() -> None:
    around = scatter.ellipse(np.array([1.0, 2.0, 3.0]), np.array([2.0, 2.0, 2.0]))
    assert {round(y, 9) for _, y in around} == {2.0}
    assert max(x for x, _ in around) == pytest.approx(3.0)


def test_throughput_against_delay_has_a_point_per_seed_and_better_is_up_and_right(own_keys: Path) -> None:
    panel = named(of_sweep.panels(folder.read(own_keys), None, ("queue.kind=codel",)))["throughput-delay"]
    assert all(len(line.x) == 3 and line.outline and line.centre for line in panel.lines)
    assert panel.is_x_inverted
    low, high = panel.x_range or (0.0, 0.0)
    assert all(low <= x <= high for line in panel.lines for x in line.x)
    axes = draw.figure([panel]).axes[0]
    assert axes.get_xlim() == pytest.approx((high, low))
    _, points = svg._drawing(panel, 1)
    line = panel.lines[0]
    places = [x for x, _ in points[0]["at"]]  # type: ignore[attr-defined]
    assert np.argsort(places).tolist() == np.argsort([-x for x in line.x]).tolist()
    assert "`delays = true`" in panel.note


def test_measured_delays_give_a_panel_of_their_95th_percentile(tmp_path: Path) -> None:
    do(
        ENDLESS.replace("[queue]", "[measure]\ndelays = true\n\n[queue]").replace("beta = [0.5, 0.7]", ""),
        tmp_path,
        seeds=3,
    )
    panels = named(of_sweep.panels(folder.read(tmp_path)))
    assert panels["throughput-delay"].x_label == "mean one-way delay (ms)"
    tail, mean = panels["throughput-delay-p95"], panels["throughput-delay"]
    assert tail.x_label == "95th percentile of one-way delay (ms)"
    for slow, usual in zip(tail.lines, mean.lines, strict=True):
        assert slow.label == usual.label
        assert all(one > other for one, other in zip(slow.x, usual.x, strict=True))


def test_a_run_shows_throughput_against_delay_of_its_flows() -> None:
    panels = named(of_run.panels([of_run.of_result(sl.run(SAMPLED))]))
    assert sum(len(line.x) for line in panels["throughput-delay"].lines) == 3
    assert all(len(line.x) == 1 for line in panels["throughput-delay-p95"].lines)


def test_the_error_of_a_panel_names_the_key_that_it_needs(tmp_path: Path) -> None:
    sl.run(SAMPLED.replace("delays = true", "delays = false")).save(tmp_path)
    result = invoke("plot", tmp_path, "--only", "throughput-delay-p95", "-o", tmp_path / "x.png")
    assert result.exit_code == 2
    assert "it needs `[measure]` with `delays = true`" in result.stderr


def test_a_weighted_percentile_is_that_of_the_repeated_values() -> None:
    values, counts = np.array([3.0, 1.0, 2.0, 9.0]), np.array([5, 70, 20, 5])
    repeated = np.repeat(values, counts)
    for share in (0.05, 0.5, 0.9, 0.95, 0.99):
        expected = np.quantile(repeated, share, method="inverted_cdf")
        assert percentiles.weighted(values, counts.astype(float), share) == expected
    assert percentiles.weighted(values, np.full(4, 4.0), 0.95) is None


@pytest.mark.parametrize("details", [{}, {"is_y_log": True}, {"places": ("a", "b"), "is_horizontal": True}])
def test_an_interval_that_reaches_below_zero_ends_at_the_axis(details: dict[str, object]) -> None:
    line = Line("x", [0.0, 1.0], [1.0, 2.0], [-3.0, 1.5], [5.0, 2.5], is_marked=True)
    panel = Panel("x", "X", "load", "completion time (s)", [line], **details)  # type: ignore[arg-type]
    _, _, drawing = svg.figure(panel, 1).partition('class="plot"')
    paths = re.findall(r'd="M([\d.-]+) ([\d.-]+)([HV])([\d.-]+)[^"]*" fill="none" stroke="#', drawing)
    assert len(paths) == 2
    ends = [float(end) for x, y, way, end in paths for end in ((x, end) if way == "H" else (y, end))]
    left, floor = 16 + horizontal.CHARACTER, svg.HEIGHT - svg.BOTTOM
    low, high = (left, horizontal.NARROW - horizontal.RIGHT) if panel.is_horizontal else (svg.TOP, floor)
    assert low <= min(ends) + 0.05
    assert max(ends) <= high
    assert ">−" not in drawing.split("<script")[0]
    assert draw.figure([panel]).axes


@pytest.mark.skipif(browser.executable() is None, reason="needs chromium")
@pytest.mark.parametrize("width", [400, 1280])
def test_no_text_of_a_figure_is_cut_off(own_keys: Path, tmp_path: Path, width: int) -> None:
    names = ("highspeed", "westwood", "newreno", "illinois", "scalable", "pcc-vivace", "ledbat-plus-plus")
    lines = [Line(name, [float(place)], [place + 1.0], is_marked=True) for place, name in enumerate(names)]
    alone = Panel("x", "X", "", "throughput of a flow (Mbit/s)", lines, places=names, is_horizontal=True)
    panels = [alone, *of_sweep.panels(folder.read(own_keys), "beta")]
    path = tmp_path / "page.html"
    path.write_text(document("figures", [figures(with_looks(panels))]))
    with browser.Browser() as page:
        page.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        page.open(path)
        cut = page.evaluate(
            "[...document.querySelectorAll('.plot > svg')].flatMap(svg => { const frame = svg.getBoundingClientRect();"
            " return [...svg.querySelectorAll('text')].filter(one => { const box = one.getBoundingClientRect();"
            " return box.left < frame.left - 1 || box.right > frame.right + 1 || box.bottom > frame.bottom + 1"
            " || box.top < frame.top - 1; }).map(one => one.textContent); })"
        )
        assert cut == []
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        assert page.evaluate("window.innerWidth") == width


def test_a_sweep_of_schemes_only_has_no_key_for_the_axis(tmp_path: Path) -> None:
    do(with_lines(), tmp_path)
    for arguments in (("--x", "load"), ("--where", "load=0.5")):
        result = invoke("plot", tmp_path, *arguments, "-o", tmp_path / "x.png")
        assert (result.exit_code, "only schemes and seeds vary" in result.stderr) == (2, True), result.output


def test_throughput_also_follows_from_delivered_bytes_of_linux() -> None:
    run = of_run.of_result(sl.run(SAMPLED))
    quantity = pl.col("quantity").cast(pl.String).replace("held_bytes", "delivered_bytes")
    of_linux = replace(run, series=run.series.with_columns(quantity))
    [ours, theirs] = [named(of_run.panels([one]))["throughput-time"] for one in (run, of_linux)]
    assert [list(line.y) for line in theirs.lines] == [list(line.y) for line in ours.lines]

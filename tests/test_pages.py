"""Tests of reports as single HTML files, in a browser if one is installed."""

import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import polars as pl
import pytest

import browser
import sparelane as sl
from command_line import invoke
from small_sweeps import BASE, LOADS, do, with_lines
from sparelane.papers import registry
from sparelane.papers.engine import saved
from sparelane.papers.pages import answers, html
from sparelane.reports.charts.panel import Line, Panel, with_looks
from sparelane.reports.pages.axis import Scale, fitting, shown
from sparelane.reports.pages.document import document, figures
from test_charts import SAMPLED

needs_browser = pytest.mark.skipif(browser.executable() is None, reason="needs chromium")

QUESTION = '# Does RC3 still help with little room in queues?\ntitle = "RC3 & <small> queues"\n' + with_lines(
    ('duration = "100ms"', 'duration = "2s"'),
    ("load = 0.5", "load = [0.2, 0.4]"),
    ('sizes = { kind = "fixed", size = "10kB" }', 'sizes = { kind = "rc3" }'),
)


FIG8 = Path(__file__).parents[1] / "results" / "rc3" / "fig8-load"


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One report of each kind."""
    place = tmp_path_factory.mktemp("reports")
    do(QUESTION, place / "sweep", seeds=3)
    sl.run(SAMPLED).save(place / "run")
    invoke("reproduce", "rc3/example-7", "rc3/model", "-o", place / "experiments")
    for name in ("sweep", "run", "experiments"):
        result = invoke("report", place / name)
        assert result.exit_code == 0, result.output
    result = invoke("report", FIG8, "-o", place / "fig8.html")
    assert result.exit_code == 0, result.output
    return {name: place / name / "report.html" for name in ("sweep", "run", "experiments")} | {
        "fig8-load": place / "fig8.html"
    }


class Reader(HTMLParser):
    """Parses a page, records the resources that it would load, and checks that elements are closed."""

    EMPTY = frozenset(("meta", "link", "img", "br", "path", "circle"))

    def __init__(self) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.open: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.fetched += [value or "" for name, value in attrs if name in ("src", "href", "data", "action")]
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.fetched += [value or "" for name, value in attrs if name in ("src", "href")]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize("kind", ["sweep", "run", "experiments", "fig8-load"])
def test_a_report_is_self_contained(reports: dict[str, Path], kind: str) -> None:
    text = reports[kind].read_text()
    reader = Reader()
    reader.feed(text)
    assert reader.open == []
    assert all(one.startswith(("data:", "#")) for one in reader.fetched)
    assert not re.search(r"url\(|@import|https?://", text)


def test_the_report_of_a_sweep_has_question_answer_and_commands(reports: dict[str, Path]) -> None:
    reader = Reader()
    reader.feed(reports["sweep"].read_text())
    for text in (
        "RC3 & <small> queues",
        "Does RC3 still help with little room in queues?",
        "How do tcp and rc3 differ",
        "workload.load",
        "Ranking by mean completion time, by load, best first",
        "rc3 compared with tcp: mean completion time",
        "All schemes had the same flows",
        "sparelane sweep s.toml --seeds 3",
        "digest",
        "1 to 3",
        'kind = "dumbbell"',
    ):
        assert text in reader.text, text


def test_the_report_of_an_experiment_has_the_papers_numbers(reports: dict[str, Path]) -> None:
    reader = Reader()
    reader.feed(reports["experiments"].read_text())
    for text in ("rc3/example-7", "paper", "difference", "The paper's claims", "sparelane reproduce rc3/example-7"):
        assert text in reader.text, text


def test_the_report_of_one_experiment_reads_only_its_folder_and_does_not_change_it(
    reports: dict[str, Path], tmp_path: Path
) -> None:
    shutil.copytree(reports["experiments"].parent, tmp_path / "all")
    folder = tmp_path / "all" / "rc3" / "example-7"
    other = tmp_path / "all" / "rc3" / "model" / "manifest.json"
    other.write_text(json.dumps({**json.loads(other.read_text()), "layout": 0}))
    before = {path: path.read_bytes() for path in (tmp_path / "all").rglob("*") if path.is_file()}
    result = invoke("report", folder, "-o", tmp_path / "one.html")
    assert result.exit_code == 0, result.output
    assert "rc3/model" not in (tmp_path / "one.html").read_text()
    assert {path: path.read_bytes() for path in (tmp_path / "all").rglob("*") if path.is_file()} == before
    # A report of all experiments reports the layout of the other one and the version that wrote it.
    refused = invoke("report", tmp_path / "all")
    assert refused.exit_code == 2
    assert "holds results in layout 0, written by sparelane" in refused.stderr
    assert "this one reads layout 1" in refused.stderr


def test_pages_are_written_only_without_an_output_file_and_keep_the_link_of_see(
    reports: dict[str, Path], tmp_path: Path
) -> None:
    shutil.copytree(reports["experiments"].parent, tmp_path / "all")
    index, page = tmp_path / "all" / "README.md", tmp_path / "all" / "rc3" / "model" / "README.md"
    assert invoke("report", tmp_path / "all", "--see", tmp_path / "speed.md").exit_code == 0
    seen = index.read_text()
    assert "(../speed.md)" in seen
    assert invoke("report", tmp_path / "all").exit_code == 0
    assert index.read_text() == seen
    index.write_text("mine")
    page.unlink()
    assert invoke("report", tmp_path / "all", "-o", tmp_path / "x.html").exit_code == 0
    assert index.read_text() == "mine"
    assert not page.exists()
    refused = invoke("report", tmp_path / "all", "-o", tmp_path / "x.html", "--see", tmp_path / "speed.md")
    assert (refused.exit_code, "--see changes the Markdown pages" in refused.stderr) == (2, True)


def test_the_report_of_interrupted_experiments_names_the_missing_ones(reports: dict[str, Path], tmp_path: Path) -> None:
    shutil.copytree(reports["experiments"].parent, tmp_path / "all")
    about = tmp_path / "all" / "report.json"
    about.write_text(json.dumps({**json.loads(about.read_text()), "unfinished": ["rc3/model", "rc3/mixed"]}))
    assert invoke("report", tmp_path / "all").exit_code == 0
    assert (
        "The work was interrupted before these were finished: rc3/mixed."
        in (tmp_path / "all" / "report.html").read_text()
    )
    assert "## Not finished\n\n- rc3/mixed\n" in (tmp_path / "all" / "README.md").read_text()


def test_the_report_of_a_papers_experiment_starts_with_an_answer_and_one_number(reports: dict[str, Path]) -> None:
    text = reports["fig8-load"].read_text()
    rows = pl.read_csv(FIG8 / "rows.csv").with_columns(pl.col("variant", "traffic").fill_null(""))
    [ours] = rows.filter(setting="30%", variant="", metric="reduction", average="mean over flows")["value"]
    answer = f"Under RC3, flows end {ours:.3g} % sooner on average than under TCP, at 30 % load; the paper has 43.5 %."
    first = text.index(f"<p class='answer'>{answer}</p>")
    # The terms of its rows and each variant are explained before the table, and claims have units.
    table = text.index("The paper&#x27;s numbers and ours")
    variants = set(rows["variant"]) - {""}
    assert variants
    for word in ("FCT", "RC3", "TCP", *variants):
        assert first < text.index(f"<dt>{word}</dt>") < table, word
    assert f'<td class="number">{ours:.4g} %</td>' in text
    assert "points from printed</td>" in text


def test_every_declared_answer_names_a_row_of_the_saved_results() -> None:
    results, _ = saved.read_all(FIG8.parents[1], registry())
    found = {one.experiment.id: one for one in results}
    for experiment in registry().values():
        if experiment.answer is not None:
            assert found[experiment.id].evaluation.find(experiment.answer[0]).value is not None, experiment.id
    for one in results:
        answer = answers.answer(one.experiment, one.evaluation.rows, one.verdicts)
        assert re.search(r"\d", answer), one.experiment.id
        assert answer.endswith("."), answer


def test_the_report_of_experiments_has_commands_with_seeds_and_without_local_paths(
    reports: dict[str, Path],
) -> None:
    text = reports["fig8-load"].read_text()
    about = json.loads((FIG8 / "manifest.json").read_text())
    seeds = "" if len(about["seeds"]) == 10 else f" --seeds {len(about['seeds'])}"
    assert f'<pre class="command">sparelane reproduce rc3/fig8-load{seeds}</pre>' in text
    assert str(FIG8.parents[1]) not in text
    assert " -o " not in text
    of_two = reports["experiments"].read_text()
    assert '<pre class="command">sparelane reproduce rc3/example-7 rc3/model</pre>' in of_two


def made_up(names: int) -> Panel:
    """Returns a panel with our numbers and the paper's, and with long names."""
    places = tuple(f"a setting with a long name, number {number}, mean over bytes" for number in range(names))
    at = [float(place) for place in range(names)]
    ours = Line("ours", at, at, [one - 0.5 for one in at], [one + 0.5 for one in at], is_marked=True, is_joined=False)
    paper = Line("paper", at, at, is_marked=True, is_joined=False)
    return Panel("x", "Long names", "", "y", [ours, paper], places=places, is_horizontal=True)


@needs_browser
def test_names_of_rows_are_complete_and_equal_numbers_do_not_overlap(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text(document("rows", [figures(with_looks([made_up(30)]))]))
    with browser.Browser() as page:
        page.open(path)
        assert page.evaluate(
            "(() => { const frame = document.querySelector('.plot > svg').getBoundingClientRect();"
            " return [...document.querySelectorAll('.plot > svg text')].every(one => {"
            " const box = one.getBoundingClientRect();"
            " return box.left >= frame.left && box.right <= frame.right && box.bottom <= frame.bottom; }); })()"
        )
        assert page.evaluate(
            "(() => { const at = [...document.querySelectorAll('.line')].map(one =>"
            " one.querySelector('[fill=\"#fff\"]').getBoundingClientRect()); return at[0].bottom <= at[1].top; })()"
        )
        page.evaluate("document.querySelector('.plot').focus()")
        for _ in range(2):
            page.press("ArrowDown")
        assert "number 1, mean over bytes" in page.evaluate("document.querySelector('.tip').textContent")
        assert page.complaints == []


@pytest.mark.parametrize(
    ("counts", "text"),
    [
        ((0, 0), ""),
        ((1, 0), "The paper's number is in band."),
        ((1, 1), "The paper's number is not in band."),
        ((9, 0), "All 9 numbers are in band."),
        ((30, 1), "29 of 30 numbers are in band, 1 is not."),
        ((30, 3), "27 of 30 numbers are in band, 3 are not."),
    ],
)
def test_the_number_of_rows_in_band_is_a_sentence(counts: tuple[int, int], text: str) -> None:
    assert html.rows_in_band(*counts) == text


@pytest.mark.parametrize(
    ("holds", "text"),
    [
        ([], ""),
        ([True], "The claim holds."),
        ([True, True], "All 2 claims hold."),
        ([False], "Of 1 claim, 0 hold, 1 fails."),
        ([True, False, None], "Of 3 claims, 1 holds, 1 fails, 1 not checked."),
    ],
)
def test_the_number_of_held_claims_is_a_sentence(holds: list[bool | None], text: str) -> None:
    assert html.claims_held(holds) == text


def test_a_report_names_missing_runs(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(with_lines(("load = 0.5", "load = [0.3, 9.0]")))
    assert invoke("sweep", tmp_path / "s.toml", "-o", tmp_path / "out").exit_code == 3
    assert invoke("report", tmp_path / "out").exit_code == 0
    text = (tmp_path / "out" / "report.html").read_text()
    assert "2 of 4 runs are missing" in text
    assert "out of range" in text


def test_the_report_of_a_run_has_the_numbers_that_the_terminal_prints(tmp_path: Path) -> None:
    printed = invoke("run", "two-flows-priority", "-o", tmp_path).output
    assert invoke("report", tmp_path).exit_code == 0
    page = (tmp_path / "report.html").read_text()
    for scheme in ("rc3", "tcp"):
        [in_terminal] = re.findall(rf"{scheme} +([\d.]+) Mb/s", printed)
        [in_page] = re.findall(rf'{scheme}</td><td class="number">([\d.]+) Mbit/s', page)
        assert in_page == in_terminal
        [row] = sl.run("two-flows-priority").summary().service.filter(scheme=scheme).iter_rows(named=True)
        assert float(in_page) == pytest.approx(row["goodput_bps"] / 1e6, rel=1e-3)


def test_the_report_of_a_stopped_run_states_its_end_and_that_the_command_continues(tmp_path: Path) -> None:
    prepared = sl.prepare(SAMPLED, set={"duration": "500s"})
    prepared.run(lambda share: False, keep=True).save(tmp_path)
    assert invoke("report", tmp_path).exit_code == 0
    reader = Reader()
    reader.feed((tmp_path / "report.html").read_text())
    assert re.search(r"This run was interrupted after [\d.e-]+ s of 500s of simulated time", reader.text)
    assert "its digest will differ" in reader.text


def test_a_report_of_one_scheme_has_its_numbers(tmp_path: Path) -> None:
    do(LOADS.replace("[workload]", '[workload]\nscheme = "tcp"'), tmp_path, seeds=2)
    assert invoke("report", tmp_path).exit_code == 0
    assert "95 % interval" in (tmp_path / "report.html").read_text()


def test_a_run_without_flows_has_a_report(tmp_path: Path) -> None:
    sl.run(BASE, set={"duration": "1us", "workload.scheme": "tcp"}).save(tmp_path)
    assert invoke("report", tmp_path).exit_code == 0


def test_a_report_that_is_not_possible_is_one_clear_error(tmp_path: Path) -> None:
    for name in ("empty", "old", "cut", "begun"):
        (tmp_path / name).mkdir()
    (tmp_path / "old" / "run.json").write_text('{"version": "0.0.1", "totals": {"end_s": 1}}')
    (tmp_path / "cut" / "manifest.json").write_text("{}")
    do(LOADS, tmp_path / "good")
    do(LOADS, tmp_path / "lost")
    (tmp_path / "lost" / "rows.parquet").write_bytes(b"no rows")
    (tmp_path / "begun" / "manifest.json").write_bytes((tmp_path / "good" / "manifest.json").read_bytes())
    cases = [
        (("nowhere",), "does not exist"),
        (("empty",), "which is empty"),
        (("old",), "holds results of sparelane 0.0.1"),
        (("cut",), "is not a manifest as `sparelane` writes one: 'version' is missing"),
        (("lost",), "cannot read"),
        (("begun",), "has no results yet"),
        (("good", "-o", "/nowhere/x.html"), "cannot write the file"),
    ]
    for (first, *rest), message in cases:
        result = invoke("report", tmp_path / first, *rest)
        assert (result.exit_code, message in result.stderr) == (2, True), (first, result.output)


@needs_browser
@pytest.mark.parametrize("kind", ["sweep", "run", "experiments", "fig8-load"])
def test_every_figure_draws_in_a_browser_without_requests_or_errors(
    reports: dict[str, Path], kind: str, tmp_path: Path
) -> None:
    with browser.Browser() as page:
        page.open(reports[kind])
        figures = page.evaluate(
            "[...document.querySelectorAll('figure')].map(one => [one.querySelector('svg[role=img]').clientHeight,"
            " one.querySelectorAll('.line > *').length, one.querySelectorAll('.key').length])"
        )
        # Of these two experiments, one has no printed number, and the other has no numbers that can be drawn together.
        assert len(figures) >= {"sweep": 4, "run": 4, "experiments": 0, "fig8-load": 2}[kind]
        assert all(height > 100 and marks > 0 and keys > 0 for height, marks, keys in figures)
        assert page.evaluate("[...document.images].every(one => one.complete && one.naturalWidth > 0)")
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        page.screenshot(tmp_path / "page.png")
        assert page.print().startswith(b"%PDF")
        assert [one for one in page.requests if not one.startswith(("data:", reports[kind].resolve().as_uri()))] == []
        assert page.complaints == []
    assert (tmp_path / "page.png").stat().st_size > 20_000


@needs_browser
def test_figures_react_to_keyboard_and_pointer(reports: dict[str, Path]) -> None:
    tip = "document.querySelector('#figure-1 .tip')"
    with browser.Browser() as page:
        page.open(reports["sweep"])
        page.evaluate("document.querySelector('#figure-1 .plot').focus()")
        page.press("ArrowRight")
        first = page.evaluate(f"{tip}.textContent")
        assert first.startswith("tcp — load: 0.2; completion time")
        page.press("ArrowRight")
        assert "load: 0.4" in page.evaluate(f"{tip}.textContent")
        page.press("ArrowDown")
        assert page.evaluate(f"{tip}.textContent").startswith("rc3 — load: 0.4")
        page.press("Escape")
        assert page.evaluate(f"{tip}.hidden") is True
        # With the keyboard, a button of the legend hides its line and shows it again.
        page.evaluate("document.querySelector('#figure-1 .key').focus()")
        page.press("Enter")
        hidden = "getComputedStyle(document.querySelector('#figure-1 .line')).display"
        assert page.evaluate(hidden) == "none"
        assert page.evaluate("document.querySelector('#figure-1 .key').getAttribute('aria-pressed')") == "false"
        page.press("Enter")
        assert page.evaluate(hidden) != "none"
        x, y = page.evaluate(
            "(() => { const one = document.querySelector('#figure-1 .line circle'); one.scrollIntoView();"
            " const box = one.getBoundingClientRect(); return [box.x + 3, box.y + 3]; })()"
        )
        page.move(x, y)
        assert page.evaluate(f"{tip}.hidden") is False
        assert page.complaints == []


@needs_browser
def test_the_figures_of_a_papers_experiment_show_our_rows_and_the_papers(reports: dict[str, Path]) -> None:
    rows = pl.read_csv(FIG8 / "rows.csv").with_columns(pl.col("variant").fill_null(""))
    printed = rows.filter(pl.col("paper").is_not_null())
    with browser.Browser() as page:
        page.open(reports["fig8-load"])
        drawn = page.evaluate(
            "[...document.querySelectorAll('figure')].map(one => [one.querySelector('figcaption').textContent,"
            " [...one.querySelectorAll('.line')].map(line => line.querySelectorAll('[fill=\"#fff\"]').length)])"
        )
        for title, counts in drawn:
            metric = title.partition(":")[0]
            of_metric = printed.filter(metric=metric).height
            assert counts == [of_metric, of_metric], title
        assert {title.partition(":")[0] for title, _ in drawn} == {"FCT", "reduction"}
        # With the keyboard, the numbers of a row are read: ours and the paper's.
        figure = next(number for number, (title, _) in enumerate(drawn) if title.startswith("reduction"))
        plot = f"document.querySelectorAll('.plot')[{figure}]"
        page.evaluate(f"{plot}.focus()")
        texts = set()
        for key in ("ArrowDown", "ArrowRight"):
            page.press(key)
            texts.add(page.evaluate(f"{plot}.querySelector('.tip').textContent"))
        first = printed.filter(metric="reduction").row(0, named=True)
        assert texts == {
            f"{whose} — {first['setting']}, RC3, mean over flows; reduction (%): {number:.4g}{interval}"
            for whose, number, interval in (
                (
                    "ours",
                    first["value"],
                    f" ({first['value'] - first['interval']:.4g} to {first['value'] + first['interval']:.4g})",
                ),
                ("paper", first["paper"], ""),
            )
        }
        image = page.evaluate("[...document.images].map(one => one.naturalWidth)")
        assert image
        assert min(image) > 500
        # The printed page has figures and tables, and nothing is cut off.
        assert page.print().count(b"/Type /Page\n") >= 2
        assert page.complaints == []


def test_axes_have_round_ticks_within_their_ends() -> None:
    assert Scale(0, 10, 0, 1).ticks() == [0, 2, 4, 6, 8, 10]
    assert Scale(0.1, 100, 0, 1, is_log=True).ticks() == [0.1, 1, 10, 100]
    assert Scale(1, 10, 0, 1, is_log=True).ticks() == [1, 2, 5, 10]
    assert Scale(0, 10, 100, 0).at(5) == 50
    for values in ([], [0.0], [5.0], [-1.0, 1.0], [1e-9, 1e9]):
        for is_log in (False, True):
            scale = fitting(values, 0, 100, is_log=is_log, from_zero=False)
            assert scale.high > scale.low
            assert all(0 <= scale.at(value) <= 100 for value in values if value > 0 or not is_log)


def test_numbers_on_axes_are_short() -> None:
    assert [shown(one) for one in (0, 0.25, -3, 1234567, 1e-7)] == [
        "0",
        "0.25",
        "−3",
        "1.23·10^6",
        "1·10^-7".replace("-", "−"),
    ]


def test_the_report_of_many_schemes_ranks_them_and_collapses_the_details(tmp_path: Path) -> None:
    names = ["newreno", "cubic", "bbr", "vegas", "westwood", "illinois"]
    many = QUESTION.replace('[scheme.rc3]\ncontroller = "rc3"\n', "").replace(
        'controller = "newreno"', f"controller = {json.dumps(names)}"
    )
    do(many.replace('"2s"', '"500ms"'), tmp_path, seeds=3)
    assert invoke("report", tmp_path, "--metric", "p95-slowdown", "--by", "load").exit_code in (0, 2)
    assert invoke("report", tmp_path, "--metric", "goodput", "--by", "load").exit_code == 0
    text = (tmp_path / "report.html").read_text()
    assert "Ranking by goodput, by load, best first" in text
    assert text.count("<details>\n") + text.count("<details><summary>") >= len(names) - 1
    # The page starts with one sentence, the ranking and one table of changes.
    assert text.index("Goodput, compared with newreno") < text.index("Ranking by goodput") < text.index("<details")
    # The first figure shows the selected metric.
    assert re.search(r"<figcaption[^>]*>Goodput of all flows", text)
    assert text.index("Goodput of all flows") < text.index("Completion time, mean over flows")


def test_metric_and_key_are_refused_for_results_that_are_not_a_sweep(reports: dict[str, Path]) -> None:
    refused = invoke("report", reports["run"].parent, "--metric", "goodput")
    assert (refused.exit_code, "are for sweeps" in refused.stderr) == (2, True)

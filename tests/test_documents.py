"""Tests of README, CONTRIBUTING, ARCHITECTURE and docs/: lines, links, commands, numbers and paths."""

import json
import re
import shlex
from collections import Counter
from pathlib import Path
from typing import Any

import check_links
import click
import polars as pl
import pytest
from click.testing import CliRunner

from sparelane.cli.main import COMMANDS as COMMAND_NAMES
from sparelane.cli.main import main
from sparelane.papers import registry
from sparelane.papers.engine import saved
from sparelane.simulation import simulate

ROOT = Path(__file__).parents[1]
DOCUMENTS = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "systems").glob("*.md")]

# The maximum length of a line of prose, characters.
COLUMNS = 100


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_lines_are_not_too_long(path: Path) -> None:
    # Pictures, tables, commands and their output cannot be wrapped.
    outputs = re.compile(r"^```(?:console|text)\n.*?^```$", re.MULTILINE | re.DOTALL)
    text = outputs.sub("", path.read_text(encoding="utf-8"))
    prose = (line for line in text.splitlines() if not line.startswith(("|", "    ", "!")))
    assert [line for line in prose if len(line) > COLUMNS] == []


def test_broken_links_are_found(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "a.html").write_text(
        '<h1 id="top">A</h1><a href="#top">up</a><a href="below/b.html#part">on</a><a href="https://x.invalid/">out</a>'
        '<img src="no.png"><a href="b.html">gone</a><a href="#nowhere">nowhere</a><a href="below/b.html#top">wrong</a>'
        '<a href="drawn.html#rc3">drawn</a><a href="drawn.html#rc4">not drawn</a>',
        encoding="utf-8",
    )
    # Scripts draw this page, so it lists its anchors.
    (tmp_path / "drawn.html").write_text('<meta name="fragments" content="rc3 rapid">', encoding="utf-8")
    (tmp_path / "below" / "b.html").write_text('<p id="part">B</p><a href="../a.html">back</a>', encoding="utf-8")
    assert list(check_links.broken(tmp_path)) == [
        "a.html: no.png: the file does not exist",
        "a.html: b.html: the file does not exist",
        "a.html: #nowhere: the anchor does not exist",
        "a.html: below/b.html#top: the anchor does not exist",
        "a.html: drawn.html#rc4: the anchor does not exist",
    ]


def test_saved_results_are_not_outdated() -> None:
    kept, gone = saved.read_all(ROOT / "results", registry())
    assert len(kept) > 45
    assert gone == []
    assert [one.experiment.id for one in kept if one.is_outdated] == []


# The maximum processor time of a run that the test repeats, seconds.
QUICK_S = 2.0


def cheapest_runs(manifest: Path) -> list[dict[str, Any]]:
    """Returns the fastest run of each scheme of an experiment, if it is quick."""
    found: dict[str, dict[str, Any]] = {}
    for run in json.loads(manifest.read_text(encoding="utf-8"))["details"]["runs"]:
        if " --on " not in run["scenario"] and run["cpu_s"] <= QUICK_S:
            scheme = next((text for text in run["settings"] if text.startswith("workload.scheme=")), "")
            found[scheme] = min(found.get(scheme, run), run, key=lambda one: float(one["cpu_s"]))
    return list(found.values())


@pytest.mark.slow
@pytest.mark.parametrize("manifest", sorted(ROOT.glob("results/*/*/manifest.json")), ids=lambda path: path.parent.name)
def test_quick_runs_of_saved_results_have_the_same_digest(manifest: Path) -> None:
    for run in cheapest_runs(manifest):
        result = simulate.run(run["scenario"], seed=run["seed"], set=run["settings"])
        assert result.digest == run["digest"], f"{run['label']}: the digest differs today; the results are outdated"


COMMANDS = ROOT / "docs" / "commands.md"


def listed_commands() -> list[str]:
    """Returns the commands of docs/commands.md without their comments."""
    lines = COMMANDS.read_text(encoding="utf-8").splitlines()
    return [line.strip() for line in lines if line.startswith(("    sparelane ", "    sudo sparelane "))]


@pytest.mark.parametrize("line", listed_commands())
def test_the_page_of_commands_shows_commands_and_options_that_exist(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("out/one", "out/question", "keys"):
        (tmp_path / folder).mkdir(parents=True)
    for file in ("FILE", "mine.toml"):
        (tmp_path / file).touch()
    _, *arguments = shlex.split(line.removeprefix("sudo "), comments=True)
    command: click.Command | None = main
    while isinstance(command, click.Group):
        name, command, arguments = command.resolve_command(click.Context(command), arguments)
    assert command is not None
    command.make_context(name, arguments)


def test_the_page_of_commands_lists_all_commands() -> None:
    listed = {shlex.split(line.removeprefix("sudo "), comments=True)[1] for line in listed_commands()}
    assert listed == set(COMMAND_NAMES)


# Numbers in documents: the documents, the experiment, columns that identify the row, the column (our value or the
# paper's), and the format.
SYSTEMS = ("docs/systems/rc3.md", "docs/systems/rapid.md", "docs/systems/rtcp.md")
AT_30 = {"setting": "30%", "variant": None, "average": "mean over flows"}
AT_70 = {"setting": "70%", "variant": None, "average": "mean over bytes"}
BESIDE_RC3 = {"setting": "hosts with TCP", "scheme": "half RC3, half TCP", "average": "mean over flows"}
BUFFERING = {"setting": "Internet-2", "variant": None, "traffic": "buffering, the first 1.5 MB"}
IDLE = {"setting": "10 Gb/s", "variant": "window restarted", "traffic": "100 packets", "average": "mean"}
GUIDE = ("docs/deploying-rc3.md",)
AT_TCPS_TIMES = {"setting": "TCP at 30%", "metric": "load with RC3 at TCP's times"}
FABRIC = {"setting": "10 Gb/s, 40 µs", "scheme": "RC3", "metric": "reduction"}
LOSS = {"setting": "loss 1e-05", "variant": None, "metric": "throughput"}
WEB = {"setting": "round trip 30 ms", "variant": None, "scheme": "RAPID"}
INCAST = {"setting": "95 to 1", "variant": None, "average": "99th percentile"}
URGENT = {"setting": "web search, load 0.6", "variant": None, "traffic": "urgent", "average": "99th percentile"}
GOODPUT = {"setting": "web search, load 0.6", "variant": None, "metric": "goodput"}
NUMBERS_IN_DOCUMENTS = [
    (SYSTEMS[:1], "rc3/fig8-load", {**AT_30, "scheme": "RC3", "metric": "reduction"}, "value", "{:.1f} %"),
    (SYSTEMS[:1], "rc3/fig8-load", {**AT_30, "scheme": "RC3", "metric": "reduction"}, "paper", "{:.1f} %"),
    (SYSTEMS[:1], "rc3/fig8-load", {**AT_30, "scheme": "TCP", "metric": "FCT"}, "value", "{:.3f} s"),
    (SYSTEMS[:1], "rc3/fig8-load", {**AT_30, "scheme": "RC3", "metric": "FCT"}, "value", "{:.3f} s"),
    (SYSTEMS[:1], "rc3/fig8-load", {**AT_70, "scheme": "RC3", "metric": "reduction"}, "value", "[{:.0f} %]"),
    (SYSTEMS[:1], "rc3/mixed", {**BESIDE_RC3, "metric": "reduction"}, "value", "[{:.1f} % shorter]"),
    (SYSTEMS[:1], "rc3/app-pacing", {**BUFFERING, "metric": "reduction"}, "value", "[{:.0f} %]"),
    (SYSTEMS[:1], "rc3/idle", {**IDLE, "metric": "reduction"}, "value", "[{:.0f} %]"),
    (SYSTEMS[:1], "rc3/fig7-sizes", {"setting": "1460 bytes", "scheme": "RC3"}, "value", "{:.0f} % for a single"),
    (SYSTEMS[:1], "rc3/fig7-sizes", {"setting": "105120 bytes", "scheme": "RC3"}, "value", "gain {:.0f} % here"),
    (SYSTEMS[:1], "rc3/even-paths", {"setting": "105120 bytes"}, "value", "[{:.0f} %]"),
    (GUIDE, "rc3/utilisation", {**AT_TCPS_TIMES, "average": "mean over flows"}, "value", "at {:.0f} % load"),
    (GUIDE, "rc3/utilisation", {**AT_TCPS_TIMES, "average": "mean over bytes"}, "value", "| {:.0f} % |"),
    (GUIDE, "rc3/datacentres", {**FABRIC, "average": "mean over flows"}, "value", "it is {:.0f} % over flows"),
    (GUIDE, "rc3/datacentres", {**FABRIC, "average": "mean over bytes"}, "value", "and {:.0f} % over bytes"),
    (SYSTEMS[1:2], "rapid/table3-loss10g", {**LOSS, "scheme": "RAPID"}, "value", "{:.2f} Gb/s"),
    (SYSTEMS[1:2], "rapid/table3-loss10g", {**LOSS, "scheme": "RAPID"}, "paper", "{:.2f} Gb/s"),
    (SYSTEMS[1:2], "rapid/table3-loss10g", {**LOSS, "scheme": "CUBIC"}, "value", "{:.2f} Gb/s"),
    (SYSTEMS[1:2], "rapid/table8-web30ms", {**WEB, "metric": "throughput"}, "value", "{:.2f} Gb/s"),
    (SYSTEMS[1:2], "rapid/table8-web30ms", {**WEB, "metric": "web flow", "average": "median"}, "value", "{:.2f} ms"),
    (SYSTEMS[2:], "rtcp/incast-95", {**INCAST, "metric": "delay, of LEDBAT's"}, "value", "{:.0f} %"),
    (SYSTEMS[2:], "rtcp/incast-95", {**INCAST, "metric": "delay, of LEDBAT's"}, "paper", "{:.0f} %"),
    (SYSTEMS[2:], "rtcp/incast-95", {**INCAST, "scheme": "RTCP", "metric": "delay"}, "value", "{:.0f} µs"),
    (SYSTEMS[2:], "rtcp/incast-95", {**INCAST, "scheme": "LEDBAT", "metric": "delay"}, "value", "{:.0f} µs"),
    (SYSTEMS[2:], "rtcp/one-to-four", {**URGENT, "scheme": "RTCP"}, "value", "{:.1f} ms"),
    (SYSTEMS[2:], "rtcp/one-to-four", {**URGENT, "scheme": "DCTCP"}, "value", "{:.1f} ms"),
    (SYSTEMS[2:], "rtcp/one-to-four", {**GOODPUT, "scheme": "RTCP"}, "value", "[{:.0f} Mb/s]"),
    (SYSTEMS[2:], "rtcp/one-to-four", {**GOODPUT, "scheme": "DCTCP"}, "value", "{:.0f} Mb/s"),
]


@pytest.mark.parametrize(("documents", "experiment", "columns", "column", "shape"), NUMBERS_IN_DOCUMENTS)
def test_numbers_in_documents_match_the_results(
    documents: tuple[str, ...], experiment: str, columns: dict[str, str | None], column: str, shape: str
) -> None:
    rows = pl.read_csv(ROOT / "results" / experiment / "rows.csv", infer_schema_length=None)
    conditions = [pl.col(name).fill_null("") == (value or "") for name, value in columns.items()]
    (number,) = rows.filter(*conditions)[column]
    for document in documents:
        text = (ROOT / document).read_text(encoding="utf-8")
        assert shape.format(number) in text, f"{document}: {shape.format(number)} of {experiment}"


@pytest.mark.parametrize("name", ["ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_every_path_that_a_guide_names_exists(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    places = (ROOT, ROOT / "python" / "sparelane", ROOT / "crates" / "bpf")
    named = re.findall(r"`([a-z][\w./-]*/[\w./-]*)`", text)
    assert len(named) > 5
    made_by_commands = {"out/explore"}
    missing = [
        path for path in named if path not in made_by_commands and not any((at / path).exists() for at in places)
    ]
    assert missing == []


def test_every_promise_of_the_threat_model_names_a_test_that_exists() -> None:
    text = (ROOT / "docs" / "threat-model.md").read_text(encoding="utf-8")
    table = text.partition("## Promises")[2].partition("\n## ")[0]
    rows = [line.split("|")[3] for line in table.splitlines() if line.startswith("| ") and "---" not in line][1:]
    sources = [*ROOT.glob("crates/net/**/*.rs"), *ROOT.glob("tests/*.py")]
    defined = {name for path in sources for name in re.findall(r"(?:fn|def) (\w+)\(", path.read_text(encoding="utf-8"))}
    assert len(rows) > 5
    for row in rows:
        names = re.findall(r"`([^`]+)`", row)
        assert names, row
        assert not [name for name in names if name not in defined and not (ROOT / name).exists()]


def test_no_crate_up_to_scenario_uses_clocks_the_environment_sockets_or_undeclared_files() -> None:
    forbidden = re.compile(
        r"\bstd::(env|fs|process)\b|\b(Udp|Tcp)(Socket|Stream|Listener)\b|\bSystemTime\b|\bInstant::now\b"
    )
    sources = [
        path
        for crate in ("core", "cc", "transport", "sim", "catalogue", "scenario")
        for path in (ROOT / "crates" / crate / "src").rglob("*.rs")
    ]
    assert len(sources) > 100
    found = {str(path.relative_to(ROOT)) for path in sources if forbidden.search(path.read_text(encoding="utf-8"))}
    # The reader of scenarios opens the files that a scenario names.
    assert found == {"crates/catalogue/src/schema/files.rs"}


# A total is written in digits, or in words from ten upwards: smaller numbers in words count a selection.
TOTALS = re.compile(
    r"\b(\d+|(?:ten|eleven|twelve|thirteen|(?:four|fif|six|seven|eigh|nine)teen|(?:twen|thir|for|fif)ty(?:-\w+)?))"
    r"\s+(?:built-in\s+)?(controllers|queue disciplines|topologies|workloads)\b",
    re.IGNORECASE,
)
TEENS = ["ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"]
TENS = {"twenty": 20, "thirty": 30, "forty": 40, "fifty": 50}
UNITS = ["", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
ENTRIES = {"controllers": "controller", "queue disciplines": "queue", "topologies": "topology", "workloads": "workload"}


def number_of(word: str) -> int:
    """Returns the value of a number in digits or in words, as `TOTALS` matches it."""
    tens, _, unit = word.lower().partition("-")
    if tens in TENS:
        return TENS[tens] + UNITS.index(unit)
    return 10 + TEENS.index(tens) if tens in TEENS else int(tens)


def test_numbers_in_words_are_read() -> None:
    words = {"30": 30, "ten": 10, "nineteen": 19, "thirty": 30, "Twenty-nine": 29}
    assert {word: number_of(word) for word in words} == words
    assert TOTALS.findall("all thirty-one built-in controllers, five topologies") == [("thirty-one", "controllers")]


def test_totals_in_documents_are_those_of_the_catalogue() -> None:
    shown = CliRunner().invoke(main, ["list", "--json"], catch_exceptions=False).output
    counts = Counter(entry["kind"] for entry in json.loads(shown))
    stated = [
        (path.name, what.lower(), number_of(number))
        for path in DOCUMENTS
        for number, what in TOTALS.findall(path.read_text(encoding="utf-8"))
    ]
    assert {path for path, *_ in stated} >= {"README.md", "CHANGELOG.md"}
    assert {what for _, what, _ in stated} == set(ENTRIES)
    assert [one for one in stated if one[2] != counts[ENTRIES[one[1]]]] == []

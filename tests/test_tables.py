"""Tests that names and numbers in tables are never broken, whatever the width of the terminal or COLUMNS."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from rich.cells import cell_len

import small_sweeps
from sparelane.cli.main import main
from sparelane.terminal import console
from sparelane.terminal.tables import NARROWEST_TEXT

WIDTHS = (60, 80, 200)
LONG = "a-scheme-whose-name-is-very-long-indeed"
SCENARIO = f"""
duration = "200ms"
[topology]
kind = "dumbbell"
pairs = 2
bottleneck_rate = "10Mbps"
[queue]
kind = "priority"
[scheme.{LONG}]
controller = "newreno"
[scheme.short]
controller = "rc3"
[[workload]]
kind = "bulk"
scheme = "{LONG}"
size = "100kB"
[[workload]]
kind = "bulk"
scheme = "short"
size = "50kB"
"""
SWEEP = small_sweeps.LOADS.replace("[scheme.tcp]", f"[scheme.{LONG}]")


class PrintedTables:
    """The tables that a command printed, before their layout."""

    def __init__(self) -> None:
        self.tables: list[tuple[Sequence[str], list[list[str]], Sequence[str], Sequence[str]]] = []

    def words(self) -> Iterator[str]:
        """Returns every word that must not be broken: of headings, and of cells except for long sentences."""
        for headings, rows, left, least in self.tables:
            kept = [place for place, heading in enumerate(headings) if heading not in least]
            # Very narrow tables become lists, which need no heading for their first cells.
            yield from (word for place in kept[1:] for word in headings[place].split())
            for place in kept:
                cells = [row[place] for row in rows]
                is_prose = headings[place] in left and any(" " in cell for cell in cells)
                words = [word for cell in cells for word in cell.split()]
                yield from (word for word in words if not is_prose or cell_len(word) <= NARROWEST_TEXT)


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> Iterator[PrintedTables]:
    found, show = PrintedTables(), console.show_table

    def record(
        title: str,
        headings: Sequence[str],
        left: Sequence[str],
        rows: Any,
        least: Sequence[str] = (),
    ) -> None:
        cells = [list(row) for row in rows]
        found.tables.append((headings, cells, left, least))
        show(title, headings, left, cells, least)

    monkeypatch.setattr(console, "show_table", record)
    yield found
    console.output.cache_clear()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a scenario, a sweep, and the results of both."""
    place = tmp_path_factory.mktemp("tables")
    (place / "s.toml").write_text(SCENARIO, encoding="utf-8")
    (place / "w.toml").write_text(SWEEP, encoding="utf-8")
    small_sweeps.do(SWEEP, place / "swept", seeds=3)
    return place


def output(width: int | None, *arguments: str) -> str:
    console.output.cache_clear()
    environment = {"COLUMNS": None if width is None else str(width)}
    done = CliRunner().invoke(main, list(arguments), env=environment)
    console.output.cache_clear()
    assert done.exit_code in (0, 3), done.output
    return done.stdout


def assert_whole(shown: PrintedTables, text: str, width: int) -> None:
    printed = set(re.split(r"[\s:]+", text)) | set(text.split())
    assert shown.tables
    cut = [word for word in shown.words() if word not in printed and word.rstrip(":") not in printed]
    assert cut == []
    assert "…" not in text
    longest = max((cell_len(word) for word in text.split()), default=0)
    table_lines = [line for line in text.splitlines() if "──" in line]
    assert all(cell_len(line) <= max(width, longest) for line in table_lines)


LISTED = (
    (),
    ("cubic",),
    ("rc3",),
    ("[transport]",),
    ("[[link]]",),
    ("bulk",),
    ("bbr",),
    ("ecn",),
    ("loss",),
    ("delay",),
    ("reno",),
    ("netem",),
)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("arguments", LISTED)
def test_lists_keep_names_and_numbers_whole(arguments: tuple[str, ...], width: int, shown: PrintedTables) -> None:
    assert_whole(shown, output(width, "list", *arguments), width)


@pytest.mark.parametrize("width", WIDTHS)
def test_the_summary_of_a_run_keeps_names_and_numbers_whole(
    width: int, shown: PrintedTables, folder: Path, tmp_path: Path
) -> None:
    text = output(width, "run", str(folder / "s.toml"), "-o", str(tmp_path / "out"))
    assert len(shown.tables) >= 3
    assert_whole(shown, text, width)


@pytest.mark.parametrize("width", WIDTHS)
def test_means_over_seeds_keep_names_and_numbers_whole(
    width: int, shown: PrintedTables, folder: Path, tmp_path: Path
) -> None:
    text = output(width, "run", str(folder / "s.toml"), "--seeds", "3", "--all", "-o", str(tmp_path / "out"))
    assert_whole(shown, text, width)


@pytest.mark.parametrize("width", WIDTHS)
def test_comparisons_keep_names_and_numbers_whole(width: int, shown: PrintedTables, folder: Path) -> None:
    assert_whole(shown, output(width, "compare", str(folder / "swept")), width)


@pytest.mark.parametrize("width", WIDTHS)
def test_rows_of_experiments_and_their_claims_keep_names_and_numbers_whole(
    width: int, shown: PrintedTables, tmp_path: Path
) -> None:
    pytest.importorskip("matplotlib")
    console.output.cache_clear()
    arguments = ["reproduce", "rc3/model", "--quick", "--check", "-o", str(tmp_path / "out")]
    done = CliRunner().invoke(main, arguments, env={"COLUMNS": str(width)})
    assert done.exit_code in (0, 1), done.output
    assert_whole(shown, done.stdout, width)


def test_a_table_of_any_shape_is_whole_at_any_width(shown: PrintedTables, capsys: pytest.CaptureFixture[str]) -> None:
    names, numbers = [LONG, f"{LONG}-2"], ["18446744073709551615", "−12.34 % (−56.7 to 8.9)"]
    shapes: list[tuple[Sequence[str], Sequence[str], list[Sequence[str]]]] = [
        (("scheme", "value"), ("scheme",), [*zip(names, numbers, strict=True)]),
        (("scheme", "setting", *"abcdef"), ("scheme", "setting"), [(one, "0.25", *numbers * 3) for one in names]),
        (("key", "meaning"), ("key", "meaning"), [(name, "what it means, in a long sentence") for name in names]),
        (("value",), (), [(number,) for number in numbers]),
        (("scheme", "value"), ("scheme",), []),
    ]
    for width in (20, 40, 60, 80, 200):
        for headings, left, rows in shapes:
            shown.tables.clear()
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("COLUMNS", str(width))
                console.output.cache_clear()
                console.show_table("a table", headings, left, rows)
            assert_whole(shown, capsys.readouterr().out, width)


def test_the_width_in_a_pipe_is_columns_or_160_characters() -> None:
    def longest(width: int | None) -> int:
        return max(cell_len(line) for line in output(width, "list", "[transport]").splitlines())

    assert longest(None) == 160
    assert longest(100) <= 100
    assert longest(240) > 160


def test_an_omitted_column_is_named() -> None:
    text = output(60, "list", "cubic")
    assert "Columns omitted to fit the width: source." in text
    assert "Columns omitted" not in output(240, "list", "cubic")

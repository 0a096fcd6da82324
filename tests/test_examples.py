"""Runs the examples of README and the documentation, and compares their output and figures with the pages."""

from __future__ import annotations

import re
from pathlib import Path

import examples
import pytest

from sparelane.cli.commands.list import catalogue

ROOT = Path(__file__).parents[1]


# Pages whose examples take long.
SLOW_PAGES = ("docs/gallery.md", "docs/recipes.md", "docs/tutorial.md")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name in SLOW_PAGES else []) for name in examples.PAGES]
)
def test_a_page_shows_what_the_program_prints(name: str, tmp_path: Path) -> None:
    page = (ROOT / name).read_text(encoding="utf-8")
    compared = 0
    for command, printed in examples.run(page, name, tmp_path):
        compared += bool(command.shown)
        assert not command.differs(printed), (
            f"{name} shows another output of `{command.line}`; `python docs/examples.py {name}` writes it again:\n"
            + "\n".join(printed)
        )
    shown = examples.figures(page)
    assert compared + len(shown) > 0, f"{name} shows neither an output nor a figure"
    for link, file in shown:
        assert (tmp_path / file).stat().st_size > 10_000, f"no command of {name} draws {file}"
        assert (ROOT / name).parent.joinpath(link).is_file(), f"{name} shows {link}, which is not in the repository"


def test_every_picture_of_the_documentation_is_used() -> None:
    used = {
        (ROOT / name).parent.joinpath(link).resolve()
        for name in examples.PAGES
        for link, _ in examples.figures((ROOT / name).read_text(encoding="utf-8"))
    }
    assert {path.resolve() for path in (ROOT / "docs" / "figures").iterdir()} == used


@pytest.mark.parametrize(
    ("shown", "printed", "differs"),
    [
        (["a", "b"], ["a", "b"], False),
        (["a", "b"], ["a", "c"], True),
        (["a"], ["a", "b"], True),
        (["a", "..."], ["a", "b", "c"], False),
        (["a", "..."], ["a"], False),
        (["a", "..."], ["b", "a"], True),
        (["...", "c"], ["a", "b", "c"], False),
        (["a", "...", "c"], ["a", "c"], False),
        (["a", "...", "c"], ["a", "b", "b", "c"], False),
        (["a", "...", "c"], ["a", "b"], True),
        (["..."], [], False),
        (["a.c"], ["abc"], True),
        ([], ["anything"], False),
    ],
)
def test_an_omission_stands_for_any_lines(shown: list[str], printed: list[str], differs: bool) -> None:
    assert examples.Command("sparelane", shown).differs(printed) == differs


@pytest.mark.parametrize(
    ("shown", "updated"),
    [
        (["?"], ["1", "2", "3", "4"]),
        (["?2"], ["1", "2", "..."]),
        (["?9"], ["1", "2", "3", "4"]),
        (["x"], ["1", "2", "3", "4"]),
        (["x", "...", "y"], ["1", "...", "4"]),
        (["x", "y", "..."], ["1", "2", "..."]),
        ([], []),
    ],
)
def test_an_update_keeps_the_number_of_shown_lines(shown: list[str], updated: list[str]) -> None:
    assert examples.Command("sparelane", shown).updated(["1", "2", "3", "4"]) == updated


def test_an_example_that_fails_names_its_command_and_its_message(tmp_path: Path) -> None:
    page = "```console\n$ sparelane run nowhere.toml\n```\n"
    with pytest.raises(examples.ExampleError, match=r"(?s)\$ sparelane run nowhere\.toml.*exit code 2.*nowhere\.toml"):
        list(examples.run(page, "page", tmp_path))


README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(("system", "title"), [("rc3", "RC3"), ("rapid", "TCP RAPID"), ("rtcp", "RTCP")])
@pytest.mark.parametrize("document", ["README.md", "docs/index.md"])
def test_the_totals_of_the_systems_match_the_results(document: str, system: str, title: str) -> None:
    results = (ROOT / "results" / "README.md").read_text(encoding="utf-8")
    total = re.search(rf"^\| \*\*{system}, all\*\* \|  \| (\d+ of \d+) \| (\d+ of \d+) \|", results, re.MULTILINE)
    assert total is not None
    text = (ROOT / document).read_text(encoding="utf-8")
    row = re.search(rf"^\| \[{title}\].*\| (\d+ of \d+) \| (\d+ of \d+) \|$", text, re.MULTILINE)
    assert row is not None, f"{document} has no row of {title}"
    assert row.groups() == total.groups(), f"{document} has other totals of {title} than results/README.md"


@pytest.mark.parametrize(("kind", "phrase"), [("controller", "{} controllers"), ("queue", "{} queue disciplines")])
def test_the_counts_in_readme_match_the_program(kind: str, phrase: str) -> None:
    found = sum(entry.kind == kind for entry in catalogue())
    assert phrase.format(found) in README

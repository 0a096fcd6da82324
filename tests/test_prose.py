"""Tests that the check of prose finds odd phrases and openings in text, and nothing in code."""

import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent

import pytest

import prose


def found(reader: Callable[[str], Iterator[prose.Passage]], text: str) -> list[tuple[int, str]]:
    report = prose.Report([])
    report.add("file", reader(dedent(text)))
    return sorted((one.line, one.phrase) for one in report.findings)


def test_rust_comments_are_read_and_code_is_not() -> None:
    text = """\
        //! Whoever reads this.
        /// Of each turn.
        fn nobody() { say("so many"); }
        // Plain words,
        // for ever.
        """
    assert found(prose.rust, text) == [
        (1, "Whoever"),
        (1, "Whoever reads this."),
        (2, "Of each turn."),
        (5, "for ever"),
    ]


def test_python_docstrings_and_comments_are_read_and_strings_are_not() -> None:
    text = '''\
        """Reads nothing."""
        TEXT = "# nobody"  # in vain


        def main() -> None:
            """What is read.

            It says so.
            """
        '''
    assert found(prose.python, text) == [(2, "in vain"), (6, "What is read."), (8, "says so")]


def test_markdown_is_read_without_code_and_targets_of_links() -> None:
    text = """\
        # Of nobody

        A [link](lest.md) and `anew`.

        ```
        anew
        ```

            anew

        | where | there is none |
        """
    assert found(prose.markdown, text) == [(1, "nobody"), (11, "is none")]


def test_a_phrase_that_is_broken_over_two_lines_is_found_on_the_first() -> None:
    assert found(prose.hashes, "# It takes so\n# many packets.\nkey = 1 # lest\n") == [(1, "so many")]


@pytest.mark.parametrize(
    ("text", "passes"),
    [
        ("// anew\n" + "// word word word word word\n" * 1000, True),
        ("// anew\n" + "// word word word word word\n" * 900, False),
        ("/// What.\nfn f() {}\n" + "/// A word.\nfn f() {}\n" * 16, True),
        ("/// What.\nfn f() {}\n" + "/// A word.\nfn f() {}\n" * 15, False),
    ],
)
def test_the_limits_hold_for_the_tree_as_a_whole(text: str, passes: bool) -> None:
    report = prose.Report([])
    report.add("file", prose.rust(text))
    assert report.passes is passes


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_the_command_fails_and_lists_places_if_a_limit_is_exceeded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.md"
    page.write_text("The transfer runs for ever.\n")
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    subprocess.run(["git", "-C", tmp_path, "add", "page.md"], check=True)
    monkeypatch.setattr(prose, "ROOT", tmp_path)
    assert prose.main([]) == 1
    assert capsys.readouterr().out.startswith('page.md:1: "for ever"')
    page.write_text("The transfer runs forever.\n")
    assert prose.main([]) == 0
    assert "page.md" not in capsys.readouterr().out


def test_a_finding_names_its_place_and_what_to_write_instead() -> None:
    report = prose.Report([])
    report.add("a.rs", prose.rust("/// Runs for ever.\n"))
    assert [str(one) for one in report.findings] == ['a.rs:1: "for ever": "forever" or "without a limit"']

"""The documents that people read."""

from pathlib import Path

import check_links
import pytest

from sparelane.experiments import registry, saved

ROOT = Path(__file__).parents[1]
DOCUMENTS = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]

# Columns of a line of prose.
COLUMNS = 100


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_lines_are_not_too_long(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    # Tables and commands cannot be broken.
    prose = (line for line in lines if not line.startswith(("|", "    ", "$ ")))
    assert [line for line in prose if len(line) > COLUMNS] == []


def test_links_that_lead_nowhere_are_found(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "a.html").write_text(
        '<h1 id="top">A</h1><a href="#top">up</a><a href="below/b.html#part">on</a><a href="https://x.invalid/">out</a>'
        '<img src="no.png"><a href="b.html">gone</a><a href="#nowhere">nowhere</a><a href="below/b.html#top">wrong</a>',
        encoding="utf-8",
    )
    (tmp_path / "below" / "b.html").write_text('<p id="part">B</p><a href="../a.html">back</a>', encoding="utf-8")
    assert list(check_links.broken(tmp_path)) == [
        "a.html: no.png: there is no such file",
        "a.html: b.html: there is no such file",
        "a.html: #nowhere: there is no such place in it",
        "a.html: below/b.html#top: there is no such place in it",
    ]


def test_the_results_that_are_kept_rest_on_what_would_now_be_simulated() -> None:
    kept, gone = saved.read_all(ROOT / "results", registry())
    assert len(kept) > 45
    assert gone == []
    assert [one.experiment.id for one in kept if one.is_outdated] == []

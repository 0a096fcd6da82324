"""The documents that people read."""

from pathlib import Path

import pytest

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

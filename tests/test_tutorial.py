"""The tutorial's commands and its Python, as they stand on the page, in the order of the page."""

import json
import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from sparelane.cli import main

TUTORIAL = Path(__file__).parents[1] / "docs" / "tutorial.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_tutorial_does_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = BLOCK.findall(TUTORIAL.read_text(encoding="utf-8"))
    assert {language for language, _ in blocks} == {"console", "python", "toml"}
    for language, text in blocks:
        if language == "toml":
            (tmp_path / "mine.toml").write_text(text, encoding="utf-8")
        elif language == "python":
            exec(compile(text, "tutorial", "exec"), {})
        else:
            for line in text.splitlines():
                prompt, program, *arguments = shlex.split(line)
                assert (prompt, program) == ("$", "sparelane")
                result = CliRunner().invoke(main, arguments)
                assert result.exit_code == 0, f"{line}: {result.output}"
    for folder in ("priority", "tcp", "rc3", "mine", "mine-fifo"):
        assert (tmp_path / "out" / folder / "run.json").is_file()
    assert (tmp_path / "out" / "papers" / "README.md").is_file()
    for name in ("priority.png", "both.png", "question.html"):
        assert (tmp_path / name).stat().st_size > 20_000, name
    # The sweep is the one that the page speaks of.
    assert len(json.loads((tmp_path / "out" / "question" / "manifest.json").read_text())["seeds"]) == 3
    assert json.loads((tmp_path / "out" / "question" / "manifest.json").read_text())["runs"] == 12

"""Runs the files, Python code and commands that pages of the documentation show."""

from __future__ import annotations

import io
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from hangs import HANG_S
from sparelane.plugins.loading import LOADED
from sparelane.plugins.registry import REGISTRY

DOCS = Path(__file__).parents[1] / "docs"
BLOCK = re.compile(r"^```(python|toml|bash|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"# (\S+\.(?:py|toml))\n")
NEEDS = {"learning.md": ("gymnasium", "pettingzoo")}


@pytest.fixture(autouse=True)
def _isolation(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Runs a test in an empty folder, and removes its registrations and imports afterwards."""
    kinds, made = {kind: dict(registered) for kind, registered in REGISTRY.kinds.items()}, REGISTRY.made
    loaded, modules = dict(LOADED), set(sys.modules)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    REGISTRY.kinds, REGISTRY.made = kinds, made
    LOADED.clear()
    LOADED.update(loaded)
    for name in set(sys.modules) - modules:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


@pytest.mark.parametrize("name", ["own-controller.md", "traces.md", "learning.md", "python.md"])
def test_the_code_of_a_page_runs(name: str, tmp_path: Path) -> None:
    for module in NEEDS.get(name, ()):
        pytest.importorskip(module)
    blocks = BLOCK.findall((DOCS / name).read_text(encoding="utf-8"))
    assert len(blocks) >= 2
    shared: dict[str, Any] = {"__name__": "__tutorial__"}
    printed = io.StringIO()
    for language, text in blocks:
        file = FILE.match(text)
        if file is not None:
            (tmp_path / file[1]).write_text(text, encoding="utf-8")
        elif language == "python":
            printed = io.StringIO()
            with redirect_stdout(printed):
                exec(compile(text, f"<{name}>", "exec"), shared)
        elif language == "text":
            assert text.split() == printed.getvalue().split(), "the output of the previous block differs"
        else:
            for line in text.splitlines():
                run(line, tmp_path)


def run(line: str, folder: Path) -> None:
    program, *arguments = shlex.split(line)
    assert program == "sparelane"
    command = [sys.executable, "-c", "from sparelane.cli.main import main; main()", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=HANG_S)
    assert done.returncode == 0, (line, done.stderr)

"""Reads the scenario argument of a command: a file, a ready-made scenario's name, or `-` for standard input."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from sparelane import _native
from sparelane._native import ScenarioError
from sparelane.scenario import library
from sparelane.simulation import simulate

STDIN = "-"
STDIN_NAME = "stdin"


@dataclass(frozen=True, slots=True)
class ScenarioInput:
    """A scenario as text.

    Attributes:
        text: the scenario.
        file: its name in messages.
        folder: the folder that relative paths in the scenario start from.
        name: the name for folders of results: the file's name without its suffix.
    """

    text: str
    file: str
    folder: Path
    name: str

    @property
    def is_saved(self) -> bool:
        """True if this is the `run.json` of a saved run."""
        return self.file != STDIN_NAME and simulate.is_saved(Path(self.file))

    @property
    def scenario(self) -> str | Path:
        """The scenario as an argument of `sparelane.run`."""
        return f"{self.text}\n" if self.file == STDIN_NAME else Path(self.file)


def read(file: str) -> ScenarioInput:
    """Reads the scenario that `file` names.

    Raises:
        ScenarioError: the file cannot be read, or does not hold text.
        FileNotFoundError: the file does not exist.
        UnknownNameError: no ready-made scenario has this name.
    """
    if file != STDIN:
        path = library.resolve(file)
        text, name, folder = simulate.read(path)
        return ScenarioInput(text, name, folder, path.resolve().parent.name if simulate.is_saved(path) else path.stem)
    content = sys.stdin.buffer.read(simulate.MAX_FILE_BYTES + 1)
    if len(content) > simulate.MAX_FILE_BYTES:
        raise ScenarioError(
            f"{STDIN_NAME}: larger than {simulate.MAX_FILE_BYTES >> 20} MiB; a scenario is a short text"
        )
    text = _native.decoded(content, STDIN_NAME)
    if not text.strip():
        raise ScenarioError(f"{STDIN_NAME}: empty; allowed: a scenario")
    return ScenarioInput(text, STDIN_NAME, Path.cwd(), STDIN_NAME)

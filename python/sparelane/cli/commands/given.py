"""The scenario that a command is given: a file, a ready-made scenario's name, or `-` for standard input."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from sparelane import _native
from sparelane._native import ScenarioError
from sparelane.scenario import library
from sparelane.simulation import simulate as api

STDIN = "-"
STDIN_NAME = "stdin"


@dataclass(frozen=True, slots=True)
class Given:
    """A scenario as text.

    Attributes:
        text: the scenario.
        file: what messages call it.
        folder: where paths in it start from.
        name: for folders: the file's, without its ending.
    """

    text: str
    file: str
    folder: Path
    name: str

    @property
    def is_saved(self) -> bool:
        """Whether it is what a run has left."""
        return self.file != STDIN_NAME and api.is_saved(Path(self.file))

    @property
    def scenario(self) -> str | Path:
        """What `sparelane.run` takes."""
        return f"{self.text}\n" if self.file == STDIN_NAME else Path(self.file)


def read(file: str) -> Given:
    """The scenario that `file` means.

    Raises:
        ScenarioError: it cannot be read, or is no text.
        FileNotFoundError: there is no such file.
        UnknownNameError: there is no ready-made scenario of that name.
    """
    if file != STDIN:
        path = library.resolve(file)
        text, name, folder = api.read(path)
        return Given(text, name, folder, path.resolve().parent.name if api.is_saved(path) else path.stem)
    content = sys.stdin.buffer.read(api.MAX_FILE_BYTES + 1)
    if len(content) > api.MAX_FILE_BYTES:
        raise ScenarioError(
            f"{STDIN_NAME}: larger than {api.MAX_FILE_BYTES >> 20} MiB; a scenario is a text of some lines"
        )
    text = _native.decoded(content, STDIN_NAME)
    if not text.strip():
        raise ScenarioError(f"{STDIN_NAME}: empty; allowed: a scenario")
    return Given(text, STDIN_NAME, Path.cwd(), STDIN_NAME)

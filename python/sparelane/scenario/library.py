"""Finds the ready-made scenarios that are part of the package."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sparelane import _native
from sparelane.common import experiment_index
from sparelane.common.names import UnknownNameError

# A scenario that reproduces a published setting names it in a comment with this prefix.
SOURCE = "# Source:"

FOLDER = Path(__file__).parent / "shipped"


@dataclass(frozen=True, slots=True)
class Ready:
    """A ready-made scenario.

    Attributes:
        name: the name for `sparelane run`.
        summary: the title, one line.
        source: the published setting that it reproduces; empty if the file names none.
        path: the file.
    """

    name: str
    summary: str
    source: str
    path: Path


def names() -> list[str]:
    """The names of all ready-made scenarios, in alphabetical order."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def find(name: str) -> Path:
    """The file of the ready-made scenario called `name`, with or without `.toml`.

    Raises:
        UnknownNameError: no ready-made scenario has this name.
    """
    stem = name.removesuffix(".toml")
    if stem not in names():
        raise UnknownNameError("ready-made scenario", name, names())
    return FOLDER / f"{stem}.toml"


def resolve(name: str) -> Path:
    """The file for `name`, which is a path or the name of a ready-made scenario.

    Raises:
        FileNotFoundError: `name` looks like a path, and the file does not exist.
        UnknownNameError: `name` looks like a name, and no ready-made scenario has it.
    """
    path = Path(name)
    if path.is_file():
        return path
    if path.exists():
        raise FileNotFoundError(f'"{name}" is not a file')
    is_ready = name.removesuffix(".toml") in names()
    if name in experiment_index.ids():
        raise FileNotFoundError(f'there is no file "{name}", but an experiment: `sparelane reproduce {name}`')
    if len(path.parts) > 1 or (path.suffix and not is_ready):
        raise FileNotFoundError(f'there is no file "{name}"')
    return find(name)


def catalogue() -> list[Ready]:
    """All ready-made scenarios, in alphabetical order."""
    return [_describe(FOLDER / f"{name}.toml") for name in names()]


def _describe(path: Path) -> Ready:
    text = path.read_text(encoding="utf-8")
    sources = (line.removeprefix(SOURCE) for line in text.splitlines() if line.startswith(SOURCE))
    return Ready(path.stem, str(_native.tables(text, path.name).get("title", "")), next(sources, "").strip(), path)

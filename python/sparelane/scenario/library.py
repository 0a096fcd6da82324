"""The ready-made scenarios that come with the package."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

from sparelane.common import experiment_index
from sparelane.common.names import UnknownNameError

# A scenario file that redoes something says what in a comment.
SOURCE = "# Source:"

FOLDER = Path(__file__).parent / "shipped"


@dataclass(frozen=True, slots=True)
class Ready:
    """A ready-made scenario.

    Attributes:
        name: what `sparelane run` takes.
        summary: its title, one line.
        source: what it is taken from, where the file says so.
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
        UnknownNameError: there is none.
    """
    stem = name.removesuffix(".toml")
    if stem not in names():
        raise UnknownNameError("ready-made scenario", name, names())
    return FOLDER / f"{stem}.toml"


def resolve(name: str) -> Path:
    """The file that `name` means: a path to one, or the name of a ready-made scenario.

    Raises:
        FileNotFoundError: `name` looks like a path, and there is no file.
        UnknownNameError: it looks like a name, and nothing is called so.
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
    """Every ready-made scenario with its title."""
    return [_describe(FOLDER / f"{name}.toml") for name in names()]


def _describe(path: Path) -> Ready:
    text = path.read_text(encoding="utf-8")
    sources = (line.removeprefix(SOURCE) for line in text.splitlines() if line.startswith(SOURCE))
    return Ready(path.stem, str(tomllib.loads(text).get("title", "")), next(sources, "").strip(), path)

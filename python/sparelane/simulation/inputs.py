"""Copies the input files of a run into its folder of results, so that the folder can be moved and the run repeated."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sparelane import _native
from sparelane.plugins.loading import LOADED
from sparelane.scenario.settings import toml_value

FOLDER = "inputs"
# The keys of file names in all tables of a scenario: maps, flows and sizes, and the traces of links.
KEYS = ("path", "trace")


@dataclass(frozen=True, slots=True)
class Inputs:
    """The copies of input files in a folder of results.

    Attributes:
        scenario: the scenario, which refers to the copies if all files could be copied.
        files: for each file in the scenario, the name of the copy as `file`, and its `sha256`.
        plugins: the same for each plugin file.
        is_whole: true if every file in the scenario was copied.
    """

    scenario: str
    files: list[dict[str, str]]
    plugins: list[dict[str, str]]
    is_whole: bool


def copy(scenario: str, folder: Path | None, place: Path) -> Inputs:
    """Copies the files of a scenario and the plugins of this process into `place`, in place of earlier copies.

    Args:
        scenario: the scenario as TOML.
        folder: the folder that relative paths in the scenario start from.
        place: the folder of results.

    Raises:
        OSError: the copies cannot be written.
    """
    content = _native.tables(scenario, "scenario")
    named = list(dict.fromkeys(_named(content)))
    found = {text: path for text in named if (path := Path(folder or Path.cwd()) / text).is_file()}
    # Copies are made in a scratch folder, which then replaces the old one.
    partial, target = place / f".{FOLDER}.partial", place / FOLDER
    shutil.rmtree(partial, ignore_errors=True)
    names = _distinct([*found, *LOADED])
    try:
        if names:
            partial.mkdir()
        for text, source in found.items():
            shutil.copyfile(source, partial / names[text])
        for where, plugin in LOADED.items():
            (partial / names[where]).write_text(plugin.text, encoding="utf-8")
        files = [{"file": f"{FOLDER}/{names[text]}", "sha256": _sha256(partial / names[text])} for text in found]
        shutil.rmtree(target, ignore_errors=True)
        if names:
            partial.rename(target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    # All paths start from one folder, so the scenario refers to the copies only if no file is missing there.
    is_whole = len(found) == len(named)
    moved = {text: f"{FOLDER}/{names[text]}" for text in found} if is_whole else {}
    return Inputs(
        _renamed(scenario, content, moved),
        files,
        [{"file": f"{FOLDER}/{names[path]}", "sha256": plugin.sha256} for path, plugin in LOADED.items()],
        is_whole,
    )


def plugins() -> list[tuple[str, str]]:
    """The name of the copy of each plugin file and its SHA-256, for scenarios without other files."""
    names = _distinct([*LOADED])
    return [(names[path], plugin.sha256) for path, plugin in LOADED.items()]


def _named(content: Any) -> Iterator[str]:
    """The paths in a scenario."""
    for key, value in content.items() if isinstance(content, Mapping) else enumerate(content):
        if isinstance(value, Mapping | list):
            yield from _named(value)
        elif key in KEYS and isinstance(value, str):
            yield value


def _distinct(paths: Sequence[str]) -> dict[str, str]:
    """A unique name for the copy of each file: its own name, with a number if another file has the same."""
    names: dict[str, str] = {}
    for path in paths:
        name, number = Path(path).name, 1
        while name in names.values():
            number += 1
            name = f"{Path(path).stem}-{number}{Path(path).suffix}"
        names[path] = name
    return names


def _renamed(scenario: str, content: Mapping[str, Any], names: Mapping[str, str]) -> str:
    """The scenario with replaced file names."""
    wanted = _with_names(content, names)
    if wanted == content:
        return scenario
    text = scenario
    for old, new in names.items():
        text = text.replace(toml_value(old), toml_value(new))
    # If the replacement also changed other values, the scenario is formatted from its content, without comments.
    is_right = _native.tables(text, "scenario") == wanted
    return text if is_right else "".join(f"{toml_value({key: value})[1:-1]}\n" for key, value in wanted.items())


def _with_names(content: Any, names: Mapping[str, str], key: object = None) -> Any:
    if isinstance(content, Mapping):
        return {name: _with_names(value, names, name) for name, value in content.items()}
    if isinstance(content, list):
        return [_with_names(value, names) for value in content]
    return names.get(content, content) if key in KEYS and isinstance(content, str) else content


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()

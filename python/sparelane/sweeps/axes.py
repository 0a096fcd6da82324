"""Finds the keys of a sweep file that vary, and their values."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sparelane._native import ScenarioError
from sparelane.results.rows import AxisValue
from sparelane.scenario.settings import DICTIONARY
from sparelane.sweeps import keys
from sparelane.sweeps.keys import Path
from sparelane.sweeps.labels import NAME, labels, without_names
from sparelane.sweeps.values import ValuesError, distinct, plain, several

# Last parts of keys that are ambiguous without the part before.
VAGUE = ("kind",)
_BARE = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True)
class Axis:
    """A key that varies.

    Attributes:
        key: the dotted key, in the form of `--set`.
        paths: the paths in the scenario that take the value; several only for the scheme of several workloads.
        values: the values in the form of a scenario.
        names: for each value, the name from its key `name`; an empty string without one.
        chooses: "scheme" or "mix" if the values choose schemes of a workload, "controller" if they choose the
            controller of a scheme; otherwise empty.
        scheme: the scheme that the key belongs to; empty for keys outside schemes.
    """

    key: str
    paths: tuple[Path, ...]
    values: tuple[Any, ...]
    names: tuple[str, ...]
    chooses: str = ""
    scheme: str = ""

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """A short and unique label for each value."""
        return labels(self.values, self.names)

    def column(self, place: int) -> AxisValue:
        """The value for a column of a table: a number, or the label."""
        value = plain(self.values[place])
        return value if isinstance(value, int | float) and not isinstance(value, bool) else self.labels[place]


def find(scenario: Mapping[str, Any], file: str, text: str) -> list[Axis]:
    """All keys that vary, in the order of the file. If a workload names no scheme, the scheme varies and comes last.

    Raises:
        ScenarioError: a list or range of values is malformed.
    """
    found = [_axis(path, *values) for path, values in _varying(scenario, (), scenario, file, text)]
    unnamed = _workloads_without_scheme(scenario, found)
    schemes = scenario.get("scheme")
    if unnamed and isinstance(schemes, Mapping) and len(schemes) > 1:
        paths = tuple((*path, "scheme") for path in unnamed)
        found.append(
            Axis(
                dotted(paths[0]) if len(paths) == 1 else "workload.scheme",
                paths,
                tuple(schemes),
                ("",) * len(schemes),
                "scheme",
            )
        )
    return found


def short_key(key: str, keys: Sequence[str]) -> str:
    """The shortest suffix of a dotted key that distinguishes it from the other keys."""
    parts = key.split(".")
    for count in range(1, len(parts)):
        ending = ".".join(parts[-count:])
        is_shared = any(f".{other}".endswith(f".{ending}") for other in keys if other != key)
        if not ending.isdigit() and ending not in VAGUE and not is_shared:
            return ending
    return key


def _axis(path: Path, values: tuple[Any, ...], given: tuple[str, ...]) -> Axis:
    names = [part for part in path if isinstance(part, str)]
    chooses, scheme = "", ""
    if names[0] == "workload" and names[1:] in (["scheme"], ["mix"]):
        chooses = names[1]
    elif names[0] == "scheme" and len(names) > 2:
        scheme = names[1]
        chooses = "controller" if names[2:] == ["controller"] else ""
    return Axis(dotted(path), (path,), values, given, chooses, scheme)


def _named(path: Path, values: Sequence[Any]) -> tuple[tuple[Any, ...], tuple[str, ...]]:
    """The values without the key `name` if it only labels them, and the names.

    Raises:
        ValuesError: a name is not a text or is repeated, or two values differ only in their names.
    """
    if any(keys.declares(path, value, NAME) for value in values if isinstance(value, Mapping)):
        return tuple(values), ("",) * len(values)
    stripped, names = without_names(values)
    distinct(stripped)
    labels(stripped, names)
    return stripped, names


def _varying(
    table: Mapping[str, Any], prefix: Path, scenario: Mapping[str, Any], file: str, text: str
) -> Iterator[tuple[Path, tuple[tuple[Any, ...], tuple[str, ...]]]]:
    for key, value in table.items():
        path = (*prefix, key)
        is_list, is_table = keys.takes_list(path, scenario), keys.takes_table(path, scenario)
        try:
            values = several(value, is_list=is_list, is_table=is_table)
            named = None if values is None else _named(path, values)
        except ValuesError as error:
            raise mistake(file, text, path, str(error)) from error
        if named is not None:
            yield path, named
        elif isinstance(value, Mapping):
            yield from _varying(value, path, scenario, file, text)
        elif isinstance(value, list):
            for place, item in enumerate(value):
                if isinstance(item, Mapping):
                    yield from _varying(item, (*path, place), scenario, file, text)


def _workloads_without_scheme(scenario: Mapping[str, Any], found: list[Axis]) -> list[Path]:
    """The paths of workloads with neither a scheme nor a mix."""
    workload = scenario.get("workload")
    tables = enumerate(workload) if isinstance(workload, list) else [(None, workload)]
    named = {path[:-1] for axis in found if axis.chooses in ("scheme", "mix") for path in axis.paths}
    paths = []
    for place, table in tables:
        path: Path = ("workload",) if place is None else ("workload", place)
        if isinstance(table, Mapping) and not {"scheme", "mix"} & set(table) and path not in named:
            paths.append(path)
    return paths


def mistake(file: str, text: str, path: Path, message: str) -> ScenarioError:
    """The error for a key of the file, with its line if only one line can be meant. Dictionaries have no lines."""
    key = dotted(path)
    name = next(part for part in reversed(path) if isinstance(part, str))
    pattern = re.compile(rf'\s*(?:\w+\.)*"?{re.escape(name)}"?\s*=|.*[{{,]\s*"?{re.escape(name)}"?\s*=')
    lines = [number for number, line in enumerate(text.splitlines(), 1) if pattern.match(line)]
    line = lines[0] if len(lines) == 1 and file != DICTIONARY else None
    error = ScenarioError(f"{file}{'' if line is None else f':{line}'}: {key}: {message}")
    error.file, error.line, error.key = file, line, key
    return error


def dotted(path: Path) -> str:
    """The path as a dotted key, in the form of `--set`."""
    return ".".join(str(part) if _BARE.fullmatch(str(part)) else json.dumps(part) for part in path)

"""Applies overrides to the scenario of a sweep. Values may be lists and ranges."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from sparelane._native import ScenarioError
from sparelane.sweeps.keys import Path


def place(scenario: dict[str, Any], texts: Sequence[str]) -> None:
    """Applies overrides, each `KEY=VALUE`, to a scenario.

    Overrides for paths that the scenario cannot have are skipped; the parser of scenarios reports them later.

    Raises:
        ScenarioError: a text does not have the form of an override.
    """
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals:
            raise ScenarioError(f"--set {text}: an override is KEY=VALUE, such as duration=10s")
        _put(scenario, _path(key), _value(value))


def _path(key: str) -> Path:
    """The parts of a dotted key.

    Raises:
        ScenarioError: the text is not a key.
    """
    parts: list[str | int] = []
    try:
        found: Any = tomllib.loads(f"{key} = 0")
        while isinstance(found, dict):
            ((part, found),) = found.items()
            parts.append(part)
    except ValueError as error:
        raise ScenarioError(f"--set {key}: not a key; allowed: names joined by dots, such as queue.limit") from error
    return tuple(parts)


def _value(text: str) -> Any:
    """Parses a TOML value. Other texts stay as they are, as in `sparelane run`."""
    try:
        found = tomllib.loads(f"value = {text}", parse_float=Decimal)
    except tomllib.TOMLDecodeError:
        return text.strip()
    return found["value"] if len(found) == 1 else text.strip()


def _put(scenario: Any, path: Path, value: Any) -> None:
    inside = scenario
    for part in path[:-1]:
        if isinstance(inside, dict):
            inside = inside.setdefault(str(part), {})
        elif (item := _item(inside, part)) is not None:
            inside = inside[item]
        else:
            return
    if isinstance(inside, dict):
        inside[str(path[-1])] = value
    elif (item := _item(inside, path[-1])) is not None:
        inside[item] = value


def _item(inside: Any, part: str | int) -> int | None:
    """The index of an item of a list; `None` if there is no such item."""
    number = int(part) if isinstance(inside, list) and str(part).isdecimal() else -1
    return number if 0 <= number < len(inside) else None

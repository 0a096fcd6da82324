"""Overrides in a sweep: what `--set` says stands in the file's place, lists and ranges included."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from sparelane._native import ScenarioError
from sparelane.sweeps.keys import Path


def place(scenario: dict[str, Any], texts: Sequence[str]) -> None:
    """Puts overrides, each `KEY=VALUE`, into a scenario.

    What has no place in the scenario is left out: the parser of scenarios says what is wrong with it.

    Raises:
        ScenarioError: one is no override.
    """
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals:
            raise ScenarioError(f"--set {text}: an override is KEY=VALUE, as in duration=10s")
        _put(scenario, _path(key), _value(value))


def _path(key: str) -> Path:
    """The parts of a dotted key.

    Raises:
        ScenarioError: it is none.
    """
    parts: list[str | int] = []
    try:
        found: Any = tomllib.loads(f"{key} = 0")
        while isinstance(found, dict):
            ((part, found),) = found.items()
            parts.append(part)
    except ValueError as error:
        raise ScenarioError(f"--set {key}: not a key; it is names joined by points, as in queue.limit") from error
    return tuple(parts)


def _value(text: str) -> Any:
    """A value of TOML, or the text itself, as for `sparelane run`."""
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
    """The number of an item that there is in a list."""
    number = int(part) if isinstance(inside, list) and str(part).isdecimal() else -1
    return number if 0 <= number < len(inside) else None

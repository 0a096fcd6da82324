"""Scenarios and overrides in Python's types, written as the TOML that the parser reads."""

from __future__ import annotations

import contextlib
import datetime
import json
import numbers
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from pathlib import PurePath
from typing import Any

from sparelane._native import ScenarioError

Value = bool | int | float | str | PurePath | datetime.date | datetime.time | Sequence["Value"] | Mapping[str, "Value"]
# Values may also be of NumPy's types, which a union of types cannot tell apart from others.
Settings = Mapping[str, Any] | Sequence[str]

# The name of a scenario that is a dictionary, in messages. The bindings leave out its line numbers.
DICTIONARY = "<dict>"
# A key that TOML takes without quotes.
BARE = re.compile(r"[A-Za-z0-9_-]+")
# Tables down to this depth get a section of their own; deeper ones are written inline.
SECTION_DEPTH = 2

EXAMPLE = '{"workload.load": 0.5}'
EXAMPLE_TEXTS = '["workload.load=0.5"]'

Path = tuple[str | int, ...]


def override_texts(settings: Settings | None) -> list[str]:
    """Overrides as the parser takes them: `key=value` each.

    A mapping has dotted keys and Python values; a sequence is passed on unchanged.

    Raises:
        TypeError: A key is not text, or a value has a type that no scenario holds.
    """
    if settings is None:
        return []
    if isinstance(settings, str):
        return [settings]
    if isinstance(settings, Mapping):
        wrong = next((key for key in settings if not isinstance(key, str)), None)
        if wrong is not None:
            raise TypeError(f"set has the key {wrong!r}; allowed: keys of the scenario, as in {EXAMPLE}")
        return [f"{key}={toml_value(value, tuple(key.split('.')))}" for key, value in settings.items()]
    texts = list(settings) if isinstance(settings, Iterable) else [settings]
    wrong = next((text for text in texts if not isinstance(text, str)), None)
    if wrong is not None:
        raise TypeError(f"set has {wrong!r}; allowed: a dictionary, as in {EXAMPLE}, or texts, as in {EXAMPLE_TEXTS}")
    return texts


def toml_value(value: Value, path: Path = ()) -> str:
    """A value as TOML writes it, on one line.

    Args:
        value: The value; numbers, arrays and flags of NumPy, too.
        path: Its place in the scenario, for the message.

    Raises:
        TypeError: TOML has no such type.
    """
    match value:
        case bool():
            return "true" if value else "false"
        # Numbers of other libraries too, such as NumPy's, some of which are floats with a `repr` of their own.
        case numbers.Integral():
            return repr(int(value))
        case numbers.Real() | Decimal():
            return repr(float(value))
        case datetime.date() | datetime.time():
            return value.isoformat()
        case str() | PurePath():
            return _text(str(value), path)
        case Mapping():
            items = (f"{_key(key, path)} = {toml_value(item, (*path, key))}" for key, item in value.items())
            return f"{{{', '.join(items)}}}"
        case Sequence() if not isinstance(value, bytes | bytearray | memoryview):
            return f"[{', '.join(toml_value(item, (*path, place)) for place, item in enumerate(value))}]"
    # An array of NumPy, or its flag.
    plain = getattr(value, "tolist", None)
    if callable(plain) and not isinstance(value, memoryview):
        return toml_value(plain(), path)
    place = f"{dotted(path)}: " if path else ""
    hint = "; leave the key out for its default" if value is None else ""
    raise TypeError(f"{place}a scenario has no values of type {type(value).__name__}{hint}")


def scenario_text(scenario: Mapping[str, Any]) -> str:
    """A scenario in a dictionary, as TOML.

    Tables are dictionaries and lists of tables are lists of them. A key with points is a path, as in overrides:
    `{"topology.pairs": 2}` is `{"topology": {"pairs": 2}}`.

    Raises:
        ScenarioError: A key is not valid, or is given twice.
        TypeError: A value has a type that no scenario holds.
    """
    tree: dict[str, Any] = {}
    _merge(tree, scenario, ())
    return "\n".join(_lines(tree, (), ())) + "\n"


def dotted(path: Iterable[str | int]) -> str:
    """A path as messages and overrides name it."""
    return ".".join(str(part) if BARE.fullmatch(str(part)) else json.dumps(part) for part in path)


def _merge(into: dict[str, Any], table: Mapping[str, Any], path: Path) -> None:
    """Puts a table's values into `into`, with dotted keys resolved."""
    for key, value in table.items():
        parts = _split(key, path)
        inside: Any = into
        for place, part in enumerate(parts[:-1]):
            inside = _step(inside, part, (*path, *parts[: place + 1]))
        full, last = (*path, *parts), parts[-1]
        if isinstance(inside, list):
            inside[_index(inside, last, full)] = _plain(value, full)
        elif last not in inside:
            inside[last] = _plain(value, full)
        elif isinstance(inside[last], dict) and isinstance(value, Mapping):
            _merge(inside[last], value, full)
        else:
            raise _mistake(full, "given twice; allowed: once")


def _step(inside: Any, part: str, path: Path) -> Any:
    """The table or list called `part`, made if a table lacks it."""
    found = inside.setdefault(part, {}) if isinstance(inside, dict) else inside[_index(inside, part, path)]
    if not isinstance(found, dict | list):
        raise _mistake(path, "a value and a table; allowed: one of them")
    return found


def _index(inside: Sequence[Any], part: str, path: Path) -> int:
    """The place of an element of a list."""
    if not part.isdecimal() or int(part) >= len(inside):
        raise _mistake(path, f"the list has {len(inside)} elements, which are numbered from 0")
    return int(part)


def _plain(value: Any, path: Path) -> Any:
    """A copy with dictionaries and lists in place of other mappings and sequences."""
    if isinstance(value, Mapping):
        table: dict[str, Any] = {}
        _merge(table, value, path)
        return table
    if isinstance(value, list | tuple):
        return [_plain(item, (*path, place)) for place, item in enumerate(value)]
    return value


def _split(key: object, path: Path) -> list[str]:
    """The parts of a key of a dictionary.

    Raises:
        TypeError: It is not text.
        ScenarioError: It is not a key.
    """
    if not isinstance(key, str):
        raise TypeError(f"{dotted(path) or 'the scenario'} has the key {key!r}; allowed: text")
    parts = key.split(".")
    if all(BARE.fullmatch(part) for part in parts):
        return parts
    if len(parts) == 1 and '"' not in key and "'" not in key:
        # A name that TOML writes in quotes.
        return parts
    found: Any = None
    parts = []
    with contextlib.suppress(ValueError):
        found = tomllib.loads(f"{key} = 0")
    while isinstance(found, dict) and len(found) == 1:
        ((part, found),) = found.items()
        parts.append(part)
    if found != 0:
        raise _mistake((*path, key), "not a key; allowed: names joined by points, as in queue.limit")
    return parts


def _lines(table: Mapping[str, Any], header: tuple[str, ...], path: Path) -> list[str]:
    """A table in TOML: first its own values, then its tables.

    Args:
        table: The table.
        header: Its name in TOML, which does not number the tables of a list.
        path: Its place in the scenario, which does.
    """
    own = {key: value for key, value in table.items() if not _is_section(value, header)}
    lines = [f"{_key(key, path)} = {toml_value(value, (*path, key))}" for key, value in own.items()]
    for key, value in table.items():
        if key in own:
            continue
        name, place = (*header, key), (*path, key)
        if isinstance(value, list):
            for number, item in enumerate(value):
                lines += ["", f"[[{_header(name)}]]", *_lines(item, name, (*place, number))]
            continue
        inside = _lines(value, name, place)
        # A table that holds only tables needs no header.
        is_needed = not inside or inside[0] != ""
        lines += [*(["", f"[{_header(name)}]"] if is_needed else []), *inside]
    return lines


def _is_section(value: Any, header: tuple[str, ...]) -> bool:
    """Returns `True` for a value that gets a header of its own."""
    is_list = isinstance(value, list) and bool(value) and all(isinstance(item, dict) for item in value)
    return len(header) < SECTION_DEPTH and (isinstance(value, dict) or is_list)


def _header(name: tuple[str, ...]) -> str:
    return ".".join(_key(part, name) for part in name)


def _key(key: object, path: Path) -> str:
    if not isinstance(key, str):
        raise TypeError(f"{dotted(path) or 'the scenario'} has the key {key!r}; allowed: text")
    return key if BARE.fullmatch(key) else _text(key, path)


def _text(text: str, path: Path) -> str:
    """A text in quotes."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise _mistake(path, f"{text!r} is not valid Unicode") from error
    # JSON leaves this control character as it is, and TOML does not take it.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _mistake(path: Path, message: str) -> ScenarioError:
    """A mistake in a dictionary, with the attributes that mistakes in files have."""
    key = dotted(path)
    error = ScenarioError(f"{DICTIONARY}: {key}: {message}" if key else f"{DICTIONARY}: {message}")
    error.file, error.line, error.key = DICTIONARY, None, key
    return error

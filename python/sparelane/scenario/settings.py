"""Converts scenarios and overrides from Python values to the TOML that the parser reads."""

from __future__ import annotations

import datetime
import json
import numbers
import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from pathlib import PurePath
from typing import Any

from sparelane import _native
from sparelane._native import ScenarioError

Value = bool | int | float | str | PurePath | datetime.date | datetime.time | Sequence["Value"] | Mapping[str, "Value"]
# Values may also have NumPy types, which a union of types cannot express.
Settings = Mapping[str, Any] | Sequence[str]

# The name of a scenario from a dictionary in messages. The bindings omit line numbers for it.
DICTIONARY = "<dict>"
# A key that TOML accepts without quotes.
BARE = re.compile(r"[A-Za-z0-9_-]+")
# Tables down to this depth become sections; deeper ones are written inline.
SECTION_DEPTH = 2

EXAMPLE = '{"workload.load": 0.5}'
EXAMPLE_TEXTS = '["workload.load=0.5"]'

Path = tuple[str | int, ...]


def override_texts(settings: Settings | None) -> list[str]:
    """Converts overrides to the form of the parser: one `key=value` each.

    A mapping has dotted keys and Python values. A sequence of texts is returned unchanged.

    Raises:
        TypeError: A key is not text, or a value has a type that scenarios do not support.
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
    """Formats a value as TOML on one line.

    Args:
        value: The value; NumPy numbers, arrays and booleans are accepted.
        path: Its path in the scenario, for the error message.

    Raises:
        TypeError: TOML does not support the type.
    """
    match value:
        case bool():
            return "true" if value else "false"
        # The conversion matters for NumPy numbers, some of which are floats with a different `repr`.
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
    # A NumPy array or boolean.
    plain = getattr(value, "tolist", None)
    if callable(plain) and not isinstance(value, memoryview):
        return toml_value(plain(), path)
    place = f"{dotted(path)}: " if path else ""
    hint = "; leave the key out for its default" if value is None else ""
    raise TypeError(f"{place}a scenario has no values of type {type(value).__name__}{hint}")


def scenario_text(scenario: Mapping[str, Any]) -> str:
    """Converts a scenario in a dictionary to TOML.

    Tables are dictionaries, and arrays of tables are lists of dictionaries. A dotted key is a path, as in overrides:
    `{"topology.pairs": 2}` is `{"topology": {"pairs": 2}}`.

    Raises:
        ScenarioError: A key is not valid, or is given twice.
        TypeError: A value has a type that scenarios do not support.
    """
    tree: dict[str, Any] = {}
    _merge(tree, scenario, ())
    return "\n".join(_lines(tree, (), ())) + "\n"


def dotted(path: Iterable[str | int]) -> str:
    """A path as a dotted key, for messages and overrides."""
    return ".".join(str(part) if BARE.fullmatch(str(part)) else json.dumps(part) for part in path)


def _merge(into: dict[str, Any], table: Mapping[str, Any], path: Path) -> None:
    """Merges a table into `into`, with dotted keys resolved."""
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
    """The table or list under `part`. Creates a table if the key does not exist."""
    found = inside.setdefault(part, {}) if isinstance(inside, dict) else inside[_index(inside, part, path)]
    if not isinstance(found, dict | list):
        raise _mistake(path, "a value and a table; allowed: one of them")
    return found


def _index(inside: Sequence[Any], part: str, path: Path) -> int:
    """The index of a list element."""
    if not part.isdecimal() or int(part) >= len(inside):
        raise _mistake(path, f"the list has {len(inside)} elements, which are numbered from 0")
    return int(part)


def _plain(value: Any, path: Path) -> Any:
    """A copy with plain dictionaries and lists."""
    if isinstance(value, Mapping):
        table: dict[str, Any] = {}
        _merge(table, value, path)
        return table
    if isinstance(value, list | tuple):
        return [_plain(item, (*path, place)) for place, item in enumerate(value)]
    return value


def _split(key: object, path: Path) -> list[str]:
    """Splits a dotted key of a dictionary.

    Raises:
        TypeError: The key is not text.
        ScenarioError: The text is not a valid key.
    """
    if not isinstance(key, str):
        raise TypeError(f"{dotted(path) or 'the scenario'} has the key {key!r}; allowed: text")
    parts = key.split(".")
    if all(BARE.fullmatch(part) for part in parts):
        return parts
    if len(parts) == 1 and '"' not in key and "'" not in key:
        # A single name that needs quotes in TOML.
        return parts
    if (found := _native.key_path(key)) is None:
        raise _mistake((*path, key), "not a key; allowed: names joined by dots, as in queue.limit")
    return found


def _lines(table: Mapping[str, Any], header: tuple[str, ...], path: Path) -> list[str]:
    """The TOML lines of a table: first its values, then its tables.

    Args:
        table: The table.
        header: Its name in TOML, without indices of arrays of tables.
        path: Its path in the scenario, with these indices.
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
        # A table that contains only tables needs no header.
        is_needed = not inside or inside[0] != ""
        lines += [*(["", f"[{_header(name)}]"] if is_needed else []), *inside]
    return lines


def _is_section(value: Any, header: tuple[str, ...]) -> bool:
    """True if a value is written as a section with a header."""
    is_list = isinstance(value, list) and bool(value) and all(isinstance(item, dict) for item in value)
    return len(header) < SECTION_DEPTH and (isinstance(value, dict) or is_list)


def _header(name: tuple[str, ...]) -> str:
    return ".".join(_key(part, name) for part in name)


def _key(key: object, path: Path) -> str:
    if not isinstance(key, str):
        raise TypeError(f"{dotted(path) or 'the scenario'} has the key {key!r}; allowed: text")
    return key if BARE.fullmatch(key) else _text(key, path)


def _text(text: str, path: Path) -> str:
    """A quoted string."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise _mistake(path, f"{text!r} is not valid Unicode") from error
    # TOML rejects this control character, which JSON does not escape.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _mistake(path: Path, message: str) -> ScenarioError:
    """The error for a mistake in a dictionary, with the attributes of errors in files."""
    key = dotted(path)
    error = ScenarioError(f"{DICTIONARY}: {key}: {message}" if key else f"{DICTIONARY}: {message}")
    error.file, error.line, error.key = DICTIONARY, None, key
    return error

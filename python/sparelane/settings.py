"""Overrides of a scenario's values, from Python's types to the text that the parser reads."""

from __future__ import annotations

import datetime
import json
import numbers
from collections.abc import Mapping, Sequence
from pathlib import PurePath

Value = bool | int | float | str | PurePath | datetime.date | datetime.time | Sequence["Value"] | Mapping[str, "Value"]
Settings = Mapping[str, Value] | Sequence[str]


def override_texts(settings: Settings | None) -> list[str]:
    """Overrides as the parser takes them: `key=value` each.

    A mapping gives dotted keys with values of Python; a sequence is taken as it is.

    Raises:
        TypeError: a value is of a kind that no scenario holds.
    """
    if settings is None:
        return []
    if isinstance(settings, str):
        return [settings]
    if isinstance(settings, Mapping):
        return [f"{key}={toml_value(value)}" for key, value in settings.items()]
    return list(settings)


def toml_value(value: Value) -> str:
    """A value as TOML writes it.

    Raises:
        TypeError: TOML has no such kind.
    """
    match value:
        case bool():
            return "true" if value else "false"
        # Numbers of other libraries too, such as numpy's, some of which are floats with a `repr` of their own.
        case numbers.Integral():
            return repr(int(value))
        case numbers.Real():
            return repr(float(value))
        case datetime.date() | datetime.time():
            return value.isoformat()
        case str() | PurePath():
            return json.dumps(str(value), ensure_ascii=False)
        case Mapping():
            return f"{{{', '.join(f'{json.dumps(key)} = {toml_value(item)}' for key, item in value.items())}}}"
        case Sequence():
            return f"[{', '.join(toml_value(item) for item in value)}]"
    # An array of numpy, or its kind of truth.
    plain = getattr(value, "tolist", None)
    if callable(plain):
        return toml_value(plain())
    raise TypeError(f"a scenario has no values of type {type(value).__name__}")

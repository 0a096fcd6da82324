"""Makes short labels for the values of a key in a sweep.

The value `{ kind = "fifo", limit = "0.25bdp" }` has the label `fifo 0.25bdp` in tables, figures, messages and columns.
A key `name` in the table replaces that label.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from sparelane.sweeps.values import ValuesError, label, plain, shown

Form = Callable[[Mapping[str, str]], list[str]]

NAME = "name"
# Keys that state the kind of a table, in order of preference.
CHOOSERS = ("kind", "controller")
# Longer labels omit keys whose value is the same in all tables of the kind, characters.
LONG = 32


def without_names(values: Sequence[Any]) -> tuple[tuple[Any, ...], tuple[str, ...]]:
    """Separates the key `name` from tables.

    Returns:
        The values without names, and the name of each value or an empty string.

    Raises:
        ValuesError: a name is not a text, is empty, or is repeated.
    """
    stripped, names = [], []
    for value in values:
        name = ""
        if isinstance(value, Mapping) and NAME in value:
            name = value[NAME]
            if not isinstance(name, str) or not name.strip():
                raise ValuesError(f"name = {shown(name)}; allowed: a text that is not empty")
            if name in names:
                raise ValuesError(f'the name "{name}" is repeated; allowed: each name once')
            value = {key: item for key, item in value.items() if key != NAME}
        stripped.append(value)
        names.append(name)
    return tuple(stripped), tuple(names)


def labels(values: Sequence[Any], names: Sequence[str] = ()) -> tuple[str, ...]:
    """A short label for each value. All labels are different.

    Args:
        values: the values, as parsed from TOML.
        names: the given name of each value; an empty string for values without one.

    Raises:
        ValuesError: a given name equals the label of another value.
    """
    given = names or [""] * len(values)
    tables = [value for value in values if isinstance(value, Mapping)]
    common = {kind: _common([dict(_flat(one)) for one in tables if _kind(one) == kind]) for kind in map(_kind, tables)}
    # The forms are tried from the shortest to the longest, until all labels differ.
    for form, may_shorten in ((_brief, True), (_with_keys, True), (_with_keys, False)):
        found = tuple(
            name or _label(value, common, form, may_shorten=may_shorten)
            for value, name in zip(values, given, strict=True)
        )
        if len(set(found)) == len(found):
            return found
    twice = next(text for text in found if found.count(text) > 1)
    raise ValuesError(f'two values have the label "{twice}"; allowed: a name that no other value has')


def _label(value: Any, common: Mapping[str, frozenset[str]], form: Form, *, may_shorten: bool) -> str:
    """The label of a value. If it is long and may be shortened, keys that all tables of its kind share are left out."""
    if isinstance(value, Mapping):
        pairs = dict(_flat(value))
        kind = _kind(value)
        text = _joined(kind, pairs, form)
        if len(text) > LONG and may_shorten:
            text = _joined(kind, {key: one for key, one in pairs.items() if key not in common[kind]}, _with_keys)
        return text
    if isinstance(value, list) and value and all(isinstance(item, Mapping) for item in value):
        return " + ".join(labels(value)) if len({shown(item) for item in value}) == len(value) else label(value)
    return label(value)


def _joined(kind: str, pairs: Mapping[str, str], form: Form) -> str:
    return " ".join([kind, *form(pairs)] if kind else form(pairs)) or "{}"


def _brief(pairs: Mapping[str, str]) -> list[str]:
    """A single quantity without its key, since its unit identifies it. Other values follow their keys."""
    if len(pairs) == 1:
        ((key, text),) = pairs.items()
        is_quantity = text[:1].isdigit() and not text[-1:].isdigit()
        return [text if is_quantity else key if text == "true" else f"{key}={text}"]
    return _with_keys(pairs)


def _with_keys(pairs: Mapping[str, str]) -> list[str]:
    return [f"{key}={text}" for key, text in pairs.items()]


def _kind(table: Mapping[str, Any]) -> str:
    """The value of the key `kind` or `controller`; empty if a table has neither."""
    return next((table[key] for key in CHOOSERS if isinstance(table.get(key), str)), "")


def _flat(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """The dotted keys of a table and its inner tables with their values as text, without the kind."""
    chooser = next((key for key in CHOOSERS if isinstance(table.get(key), str)), "")
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _inner(f"{prefix}{key}", value)
        elif key != chooser:
            yield f"{prefix}{key}", label(plain(value))


def _inner(key: str, table: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    kind = _kind(table)
    if kind:
        yield key, kind
    yield from _flat(table, f"{key}.")


def _common(tables: Sequence[Mapping[str, str]]) -> frozenset[str]:
    """The keys whose value is the same in all tables; empty for a single table."""
    if len(tables) < 2:
        return frozenset()
    return frozenset(key for key, text in tables[0].items() if all(one.get(key) == text for one in tables))

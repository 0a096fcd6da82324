"""Reads tables of a TOML file key by key and checks them. A mistake raises an error that names the file and the key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

T = TypeVar("T")


class DeclarationError(ValueError):
    """A mistake in a file that declares an experiment; the message names the place and what is allowed."""


def filled(value: Any, values: Mapping[str, Any]) -> Any:
    """Returns a value of a file with placeholders replaced, in all its lists and tables, and in the names of keys.

    A text that is a placeholder becomes its value, which may be of any kind; a list joins the list that holds its
    placeholder. Inside longer texts, only texts and numbers replace placeholders.

    Raises:
        KeyError: a text starts with `$` but is neither a placeholder nor a formula, which also ends with `$`.
    """
    if isinstance(value, str):
        if value in values or (value.startswith("$") and not value.endswith("$")):
            return values[value]
        for placeholder, known in values.items():
            if isinstance(known, str | int | float):
                value = value.replace(placeholder, str(known))
        return value
    if isinstance(value, list):
        joined: list[Any] = []
        for one in value:
            entry = filled(one, values)
            joined.extend(entry if isinstance(one, str) and isinstance(entry, list) else [entry])
        return joined
    if isinstance(value, dict):
        return {str(filled(name, values)): filled(one, values) for name, one in value.items()}
    return value


class Section:
    """A table of the file. Each method reads a key; `finish` reports keys that were not read as unknown."""

    def __init__(self, values: Mapping[str, Any], where: str) -> None:
        self._left = dict(values)
        self.where = where

    def __contains__(self, key: str) -> bool:
        return key in self._left

    def __iter__(self) -> Iterator[str]:
        return iter(tuple(self._left))

    def copy(self) -> Section:
        """Returns a table with the keys that are still unread."""
        return Section(self._left, self.where)

    def values(self) -> dict[str, Any]:
        """Returns the keys that are still unread with their values."""
        return dict(self._left)

    def completed(self, values: Mapping[str, Any]) -> Section:
        """Returns a table with the keys that are still unread, and further ones."""
        return Section({**self._left, **values}, self.where)

    def has_table(self, key: str) -> bool:
        """Returns true if the value of a key is a table."""
        return isinstance(self._left.get(key), dict)

    def fail(self, key: str, problem: str) -> DeclarationError:
        """Returns an error that states the problem of a key."""
        return DeclarationError(f'{self.where}: "{key}" {problem}')

    def _take(self, key: str, kind: type[T] | tuple[type, ...], words: str, default: T | None) -> Any:
        if key not in self._left:
            if default is None:
                raise self.fail(key, "is missing")
            return default
        value = self._left.pop(key)
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise self.fail(key, f"is {value!r}; allowed: {words}")
        return value

    def text(self, key: str, default: str | None = None) -> str:
        """Returns a text."""
        return str(self._take(key, str, "a text", default))

    def number(self, key: str, default: float | None = None) -> float:
        """Returns a number."""
        return float(self._take(key, (int, float), "a number", default))

    def whole(self, key: str, default: int | None = None) -> int:
        """Returns a whole number."""
        return int(self._take(key, int, "a whole number", default))

    def flag(self, key: str) -> bool:
        """Returns true or false; false if the key is missing."""
        return bool(self._take(key, bool, "true or false", False))

    def texts(self, key: str) -> tuple[str, ...]:
        """Returns a list of texts; the file may have one text instead of a list. Empty if the key is missing."""
        found = self._take(key, (list, str), "a text or a list of texts", [])
        if isinstance(found, str):
            return (found,)
        if not all(isinstance(one, str) for one in found):
            raise self.fail(key, f"is {found!r}; allowed: a list of only texts")
        return tuple(found)

    def numbers(self, key: str) -> tuple[float, ...]:
        """Returns a list of numbers; empty if the key is missing."""
        found = self._take(key, list, "a list of numbers", [])
        if not all(isinstance(one, int | float) and not isinstance(one, bool) for one in found):
            raise self.fail(key, f"is {found!r}; allowed: a list of only numbers")
        return tuple(map(float, found))

    def lists(self, key: str, default: Sequence[Any] | None = None) -> tuple[list[Any], ...]:
        """Returns a list of lists."""
        found = self._take(key, (list, tuple), "a list of lists", default)
        if not all(isinstance(one, list) for one in found):
            raise self.fail(key, "has an entry that is not a list")
        return tuple(found)

    def arguments(self, key: str) -> tuple[str | int | float | tuple[Any, ...], ...]:
        """Returns a list of texts, numbers and lists as it is; an empty one if the key is missing."""
        found = self._take(key, list, "a list of texts and numbers", [])
        return tuple(tuple(one) if isinstance(one, list) else one for one in found)

    def choices(self, key: str) -> tuple[Any, ...]:
        """Returns a list of values of any kind."""
        return tuple(self._take(key, list, "a list", None))

    def columns(self, key: str) -> tuple[str | dict[str, Any], ...]:
        """Returns a list of texts and tables."""
        found = self._take(key, list, "a list of texts and tables", None)
        if not all(isinstance(one, str | dict) for one in found):
            raise self.fail(key, "has an entry that is neither a text nor a table")
        return tuple(found)

    def one_of(self, key: str, choices: Mapping[str, T], default: str | None = None) -> T:
        """Reads a name and returns its value in `choices`."""
        name = self.text(key, default)
        if name not in choices:
            raise self.fail(key, f'is "{name}"; allowed: {", ".join(choices)}')
        return choices[name]

    def some_of(self, key: str, choices: Mapping[str, T]) -> list[T]:
        """Reads names and returns their values in `choices`."""
        names = self.texts(key)
        for name in names:
            if name not in choices:
                raise self.fail(key, f'has "{name}"; allowed: {", ".join(choices)}')
        return [choices[name] for name in names]

    def filled(self, values: Mapping[str, Any]) -> Section:
        """Returns the table with placeholders replaced by values, as `filled` does."""
        return Section(filled(self._left, values), self.where)

    def section(self, key: str) -> Section:
        """Returns a table; an empty one if the key is missing."""
        return Section(self._take(key, dict, "a table", {}), f"{self.where}, {key}")

    def sections(self, key: str) -> list[Section]:
        """Returns a list of tables; the file may have one table instead of a list. Empty if the key is missing."""
        found = self._take(key, (list, dict), "a list of tables", [])
        tables = [found] if isinstance(found, dict) else found
        if not all(isinstance(one, dict) for one in tables):
            raise self.fail(key, "has an entry that is not a table")
        return [Section(one, f"{self.where}, {key} {place}") for place, one in enumerate(tables, 1)]

    def finish(self) -> None:
        """Raises an error if a key was not read."""
        if self._left:
            raise self.fail(next(iter(self._left)), "is not a key here, or cannot be combined with the others")

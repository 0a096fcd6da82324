"""Tables of a TOML file, read key by key and checked: a mistake is an error that names file and key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

T = TypeVar("T")


class DeclarationError(ValueError):
    """A file that declares an experiment is wrong; the message says where, and what is allowed."""


def filled(value: Any, values: Mapping[str, Any]) -> Any:
    """Returns a value of a file with placeholders replaced, in all its lists and tables.

    A text that is a placeholder becomes its value, which may be of any kind; a list joins the list that holds its
    placeholder. Inside longer texts, only texts and numbers replace placeholders.

    Raises:
        KeyError: a text begins with `$`, as placeholders do, and is none.
    """
    if isinstance(value, str):
        if value in values or value.startswith("$"):
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
        return {name: filled(one, values) for name, one in value.items()}
    return value


class Section:
    """A table of the file, read key by key; what is left unread is unknown."""

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

    def fail(self, key: str, problem: str) -> DeclarationError:
        """The error that a key has this problem."""
        return DeclarationError(f'{self.where}: "{key}" {problem}')

    def _take(self, key: str, kind: type[T] | tuple[type, ...], words: str, default: T | None) -> Any:
        if key not in self._left:
            if default is None:
                raise self.fail(key, "is missing")
            return default
        value = self._left.pop(key)
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise self.fail(key, f"must be {words}, and is {value!r}")
        return value

    def text(self, key: str, default: str | None = None) -> str:
        """A text."""
        return str(self._take(key, str, "a text", default))

    def number(self, key: str, default: float | None = None) -> float:
        """A number."""
        return float(self._take(key, (int, float), "a number", default))

    def whole(self, key: str, default: int | None = None) -> int:
        """A whole number."""
        return int(self._take(key, int, "a whole number", default))

    def flag(self, key: str) -> bool:
        """True or false; false where it is not there."""
        return bool(self._take(key, bool, "true or false", False))

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of texts, or one text alone; none where it is not there."""
        found = self._take(key, (list, str), "a text or a list of texts", [])
        if isinstance(found, str):
            return (found,)
        if not all(isinstance(one, str) for one in found):
            raise self.fail(key, f"must hold texts alone, and is {found!r}")
        return tuple(found)

    def numbers(self, key: str) -> tuple[float, ...]:
        """A list of numbers; none where it is not there."""
        found = self._take(key, list, "a list of numbers", [])
        if not all(isinstance(one, int | float) and not isinstance(one, bool) for one in found):
            raise self.fail(key, f"must hold numbers alone, and is {found!r}")
        return tuple(map(float, found))

    def lists(self, key: str, default: Sequence[Any] | None = None) -> tuple[list[Any], ...]:
        """A list of lists."""
        found = self._take(key, (list, tuple), "a list of lists", default)
        if not all(isinstance(one, list) for one in found):
            raise self.fail(key, "must hold lists alone")
        return tuple(found)

    def arguments(self, key: str) -> tuple[str | int | float | tuple[Any, ...], ...]:
        """Returns a list of texts, numbers and lists as it is; an empty one if the key is missing."""
        found = self._take(key, list, "a list of texts and numbers", [])
        return tuple(tuple(one) if isinstance(one, list) else one for one in found)

    def choices(self, key: str) -> tuple[Any, ...]:
        """Returns a list of values of any kind."""
        return tuple(self._take(key, list, "a list", None))

    def columns(self, key: str) -> tuple[str | dict[str, Any], ...]:
        """A list of texts and tables."""
        found = self._take(key, list, "a list of texts and tables", None)
        if not all(isinstance(one, str | dict) for one in found):
            raise self.fail(key, "must hold texts and tables alone")
        return tuple(found)

    def one_of(self, key: str, choices: Mapping[str, T], default: str | None = None) -> T:
        """What a name of these stands for."""
        name = self.text(key, default)
        if name not in choices:
            raise self.fail(key, f'is "{name}"; allowed: {", ".join(choices)}')
        return choices[name]

    def some_of(self, key: str, choices: Mapping[str, T]) -> list[T]:
        """What names of these stand for."""
        names = self.texts(key)
        for name in names:
            if name not in choices:
                raise self.fail(key, f'has "{name}"; allowed: {", ".join(choices)}')
        return [choices[name] for name in names]

    def filled(self, values: Mapping[str, Any]) -> Section:
        """Returns the table with placeholders replaced by values, as `filled` does."""
        return Section(filled(self._left, values), self.where)

    def section(self, key: str) -> Section:
        """A table; an empty one where it is not there."""
        return Section(self._take(key, dict, "a table", {}), f"{self.where}, {key}")

    def sections(self, key: str) -> list[Section]:
        """A list of tables, or one alone; none where it is not there."""
        found = self._take(key, (list, dict), "a list of tables", [])
        tables = [found] if isinstance(found, dict) else found
        if not all(isinstance(one, dict) for one in tables):
            raise self.fail(key, "must hold tables alone")
        return [Section(one, f"{self.where}, {key} {place}") for place, one in enumerate(tables, 1)]

    def finish(self) -> None:
        """Refuses keys that nobody has read."""
        if self._left:
            raise self.fail(next(iter(self._left)), "is not a key here, or does not go with the others")

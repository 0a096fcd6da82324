"""Expands lists and ranges of values in a sweep file.

A range is a table such as `{ from = 0.1, to = 0.9, step = 0.2 }`. `{ each = [...] }` lists the values of a key that
takes lists or tables as values.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

# The largest number of values of a key.
MAX_VALUES = 10_000
RANGE_KEYS = ("from", "to", "step", "factor", "points", "log")
EACH = "each"
ALLOWED = (
    "{ from = 0.1, to = 0.9, step = 0.2 }, { from = 1, to = 1000, factor = 10 }, "
    "{ from = 1, to = 9, points = 5 } or the last with log = true"
)
# Significant digits of the values of a range with `points`.
DIGITS = 6
_QUANTITY = re.compile(r"\s*([0-9.]+(?:[eE][+-]?[0-9]+)?)\s*(.*?)\s*")


class ValuesError(ValueError):
    """A list or range of values is malformed. The message states the reason."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number with its unit, which may be empty."""

    number: Decimal
    unit: str

    @classmethod
    def read(cls, value: object, what: str) -> Quantity:
        """Parses a quantity from a TOML value.

        Raises:
            ValuesError: the value is not a quantity.
        """
        if isinstance(value, Decimal | int | float) and not isinstance(value, bool):
            # `str` gives the digits of the file. `Decimal(0.1)` would give those of the nearest binary number.
            return cls(Decimal(str(value)), "")
        match = _QUANTITY.fullmatch(value) if isinstance(value, str) else None
        try:
            return cls(Decimal(match[1]), match[2]) if match else _refuse_number(what, value)
        except ArithmeticError:
            return _refuse_number(what, value)

    def plain(self) -> int | Decimal | str:
        """The value in the form of a scenario."""
        text = format(self.number.normalize(), "f")
        if self.unit:
            return f"{text}{self.unit}"
        return Decimal(text) if "." in text else int(text)


def _refuse_number(what: str, value: object) -> Quantity:
    raise ValuesError(f'{what} = {shown(value)} is not a number; allowed: a number, or one with a unit such as "10ms"')


def several(value: Any, *, is_list: bool, is_table: bool) -> list[Any] | None:
    """Expands a list, a range or `each`. Returns `None` for a single value.

    Args:
        value: the value in the file.
        is_list: true if a list is a single value of the key.
        is_table: true if a table is a single value of the key.

    Raises:
        ValuesError: there are no values, too many, or two equal ones; or the range is malformed.
    """
    if isinstance(value, list) and not is_list:
        return distinct(value)
    if not isinstance(value, Mapping):
        return None
    if EACH in value:
        if len(value) > 1 or not isinstance(value[EACH], list):
            raise ValuesError(
                "each is the only key of its table; allowed: a list of the values, as in { each = [...] }"
            )
        return distinct(value[EACH])
    if not is_table and {"from", "to"} <= set(value):
        return distinct(_range(value))
    return None


def distinct(values: Sequence[Any]) -> list[Any]:
    """Returns the values as a list.

    Raises:
        ValuesError: the list is empty, is too long, or has two equal values.
    """
    if not values:
        raise ValuesError("an empty list; allowed: one value or more")
    if len(values) > MAX_VALUES:
        raise ValuesError(f"{len(values)} values; allowed: at most {MAX_VALUES}")
    seen: set[str] = set()
    for text in map(shown, values):
        if text in seen:
            raise ValuesError(f"{text} is repeated; allowed: each value once")
        seen.add(text)
    return list(values)


def _range(table: Mapping[str, Any]) -> list[Any]:
    unknown = next((key for key in table if key not in RANGE_KEYS), None)
    if unknown is not None:
        raise ValuesError(f'unknown key "{unknown}" in a range; allowed: {ALLOWED}')
    ways = [key for key in ("step", "factor", "points") if key in table]
    if len(ways) != 1 or ("log" in table and ways != ["points"]):
        raise ValuesError(f"a range has one of step, factor and points; allowed: {ALLOWED}")
    first, last = Quantity.read(table["from"], "from"), Quantity.read(table["to"], "to")
    if first.unit != last.unit:
        raise ValuesError(f'from is in "{first.unit}" and to in "{last.unit}"; allowed: one unit')
    if last.number <= first.number:
        raise ValuesError(f"to = {shown(table['to'])} is not above from = {shown(table['from'])}; allowed: more")
    match ways[0]:
        case "step":
            numbers = _by_step(first, last, Quantity.read(table["step"], "step"))
        case "factor":
            numbers = _by_factor(first.number, last.number, Quantity.read(table["factor"], "factor").number)
        case _:
            numbers = _points(first.number, last.number, table["points"], is_log=table.get("log", False))
    return [Quantity(number, first.unit).plain() for number in numbers]


def _by_step(first: Quantity, last: Quantity, step: Quantity) -> list[Decimal]:
    if step.unit != first.unit or step.number <= 0:
        unit = f'in "{first.unit}" as from is' if first.unit else "without a unit, as from"
        raise ValuesError(f"step = {label(step.plain())}; allowed: a step above 0, {unit}")
    count = int((last.number - first.number) / step.number) + 1
    if count > MAX_VALUES:
        raise ValuesError(f"{count} values; allowed: at most {MAX_VALUES}")
    return [first.number + place * step.number for place in range(count)]


def _by_factor(first: Decimal, last: Decimal, factor: Decimal) -> list[Decimal]:
    if factor <= 1 or first <= 0:
        raise ValuesError("allowed in a range by a factor: from above 0, and a factor above 1")
    numbers: list[Decimal] = []
    number = first
    while number <= last * (1 + Decimal("1e-9")) and len(numbers) <= MAX_VALUES:
        numbers.append(number)
        number *= factor
    return numbers


def _points(first: Decimal, last: Decimal, points: object, *, is_log: object) -> list[Decimal]:
    if not isinstance(points, int) or not 2 <= points <= MAX_VALUES or not isinstance(is_log, bool):
        raise ValuesError(f"allowed: points, a whole number from 2 to {MAX_VALUES}, and log, true or false")
    if is_log and first <= 0:
        raise ValuesError("a range with log = true; allowed: from above 0")
    ends = (math.log(first), math.log(last)) if is_log else (float(first), float(last))
    between = [ends[0] + (ends[1] - ends[0]) * place / (points - 1) for place in range(1, points - 1)]
    inner = [Decimal(f"{math.exp(one) if is_log else one:.{DIGITS}g}") for one in between]
    return [first, *inner, last]


def shown(value: object) -> str:
    """Formats a value as TOML on one line."""
    from sparelane.scenario.settings import toml_value

    return toml_value(plain(value))


def plain(value: Any) -> Any:
    """Converts decimals in a TOML value to floats."""
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value


def label(value: object) -> str:
    """Formats a single value for readers, with texts unquoted. `labels.labels` names all values of a key."""
    return value if isinstance(value, str) else shown(value)

"""Draws a new network for each episode, from lists and ranges of values in the scenario.

The scenario of an environment may have a list or a range of values for a key, like a sweep file. A sweep runs every
combination; an environment draws one value of each key, uniformly and independently, when an episode starts. A range
without `step`, `factor` and `points` is continuous: `{ from = "5Mbps", to = "50Mbps" }` is uniform, and log-uniform
with `log = true`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np

from sparelane import _native
from sparelane._native import ScenarioError
from sparelane.scenario.settings import toml_value
from sparelane.sweeps import axes, keys
from sparelane.sweeps.keys import Path
from sparelane.sweeps.values import DIGITS, Quantity, ValuesError, plain, shown

# The keys of a continuous range.
ENDS = frozenset({"from", "to"})
LOG = "log"
# Units with integer quantities.
COUNTS = ("", "packet", "packets", "segment", "segments")


@dataclass(frozen=True, slots=True)
class Choice:
    """A key with a list of values, each drawn with the same probability."""

    key: str
    values: Sequence[Any]

    def draw(self, random: np.random.Generator) -> Any:
        """Draws one of the values."""
        return plain(self.values[int(random.integers(len(self.values)))])


@dataclass(frozen=True, slots=True)
class Interval:
    """A key with a continuous range.

    Attributes:
        key: The dotted key.
        low: The smallest value.
        high: The largest value, in the same unit.
        is_log: True if the distribution is log-uniform.
    """

    key: str
    low: Quantity
    high: Quantity
    is_log: bool

    def draw(self, random: np.random.Generator) -> Any:
        """Draws a value from `low` to `high`; an integer if both ends are integers and the unit is a count."""
        low, high = self.low.number, self.high.number
        ends = (math.log(low), math.log(high)) if self.is_log else (float(low), float(high))
        drawn = random.uniform(*ends)
        number = Decimal(f"{math.exp(drawn) if self.is_log else drawn:.{DIGITS}g}")
        if self.is_whole:
            # Uniform over the integers including both ends, unless the range is logarithmic.
            number = Decimal(round(number) if self.is_log else int(random.integers(int(low), int(high) + 1)))
        return plain(Quantity(min(max(number, low), high), self.low.unit).plain())

    @property
    def is_whole(self) -> bool:
        """True if only integers are drawn."""
        return self.low.unit in COUNTS and all(not str(one.number).count(".") for one in (self.low, self.high))


Draw = Choice | Interval


def draws(text: str, file: str, settings: Sequence[str]) -> list[Draw]:
    """The keys of a scenario that get a new value in each episode, in the order of the file.

    Args:
        text: The scenario, as TOML.
        file: Its name in messages.
        settings: Overrides, each `KEY=VALUE`, which may be lists and ranges.

    Raises:
        ScenarioError: The text is not valid TOML, or an override, a list or a range is not valid.
    """
    scenario = _native.tables(text, file, list(settings))
    # An environment draws the seed of each run itself.
    scenario.pop("seed", None)
    try:
        intervals = []
        for path, table, place in list(_continuous(scenario, (), scenario)):
            try:
                intervals.append(_interval(axes.dotted(path), table))
            except ValuesError as error:
                raise axes.mistake(file, text, path, str(error)) from error
            # A single value replaces the range, since the rules of sweeps would reject a continuous range.
            place[path[-1]] = table["from"]
        found = axes.find(scenario, file, text)
    except ScenarioError as error:
        raise _of_settings(error, settings) from error
    # Schemes are not drawn, since the agent belongs to one of them.
    choices = [Choice(axis.key, axis.values) for axis in found if all(_is_in(scenario, path) for path in axis.paths)]
    return [*choices, *intervals]


def _of_settings(error: ScenarioError, settings: Sequence[str]) -> ScenarioError:
    """The error, attributed to `--set` if an override caused it."""
    if not any(one.partition("=")[0].strip() == error.key for one in settings):
        return error
    attributed = ScenarioError(f"--set {error.key}: {str(error).partition(f'{error.key}: ')[2]}")
    attributed.file, attributed.line, attributed.key = "--set", None, error.key
    return attributed


def texts(drawn: Mapping[str, Any]) -> list[str]:
    """The drawn values as overrides, each `KEY=VALUE`."""
    return [f"{key}={toml_value(value)}" for key, value in drawn.items()]


def _continuous(
    inside: Any, prefix: Path, scenario: Mapping[str, Any]
) -> Iterator[tuple[Path, Mapping[str, Any], Any]]:
    """All continuous ranges, each with its path and the table that contains it."""
    for key, value in inside.items() if isinstance(inside, Mapping) else enumerate(inside):
        path = (*prefix, key)
        if isinstance(value, Mapping):
            is_range = ENDS <= set(value) <= ENDS | {LOG}
            if is_range and isinstance(key, str) and not keys.takes_table(path, scenario):
                yield path, value, inside
            else:
                yield from _continuous(value, path, scenario)
        elif isinstance(value, list):
            yield from _continuous(value, path, scenario)


def _interval(key: str, table: Mapping[str, Any]) -> Interval:
    low, high = Quantity.read(table["from"], "from"), Quantity.read(table["to"], "to")
    is_log = table.get(LOG, False)
    if not isinstance(is_log, bool):
        raise ValuesError(f"log = {shown(is_log)}; allowed: true or false")
    if low.unit != high.unit:
        raise ValuesError(f'from is in "{low.unit}" and to in "{high.unit}"; allowed: one unit')
    if high.number <= low.number:
        raise ValuesError(f"to = {shown(table['to'])} is not above from = {shown(table['from'])}; allowed: more")
    if is_log and low.number <= 0:
        raise ValuesError("a range with log = true; allowed: from above 0")
    return Interval(key, low, high, is_log)


def _is_in(scenario: Any, path: Path) -> bool:
    for part in path:
        if isinstance(scenario, Mapping):
            if part not in scenario:
                return False
        elif not (isinstance(scenario, list) and isinstance(part, int) and part < len(scenario)):
            return False
        scenario = scenario[part]
    return True

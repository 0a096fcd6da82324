"""Ranks schemes in each setting, best first. Schemes without a clear difference share a place."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from sparelane.common.units import quantity
from sparelane.results.rows import ALL, NETWORK, axis_names
from sparelane.sweeps import measure
from sparelane.sweeps.differences import (
    DOUBTFUL_POINTS,
    LEVEL,
    SIZE,
    Change,
    Pair,
    Thresholds,
    central,
    effect,
    sized,
    value_words,
    without_key,
)
from sparelane.sweeps.intervals import adjusted
from sparelane.sweeps.metrics import Metric

# The largest number of settings or schemes that become columns of a table.
COLUMNS = 4
UNFINISHED = "†"

# The values of the keys that identify a column.
_Column = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Cell:
    """The rank of a scheme in a setting.

    Attributes:
        value: the mean over the seeds; for several settings, the geometric mean of these.
        place: 1 for the best scheme, or for the smallest value if neither direction is better.
        is_tied: true if another scheme shares the place.
        leaves_out: true if clearly fewer flows finished than under the scheme with the most finished flows.
    """

    value: float
    place: int
    is_tied: bool
    leaves_out: bool = False


@dataclass(frozen=True, slots=True)
class Ranking:
    """A ranking of schemes in each setting.

    Attributes:
        metric: the metric of the ranking.
        settings: the columns; one column without a name if only the scheme varies.
        cells: for each scheme, best first, its cell in each setting; `None` if no run has a number.
        has_ties: true if ties can be determined, with three seeds or more or if nothing is random.
        compared: the largest number of schemes in a setting.
    """

    metric: Metric
    settings: tuple[str, ...]
    cells: Mapping[str, tuple[Cell | None, ...]]
    has_ties: bool
    compared: int

    def mean_place(self, scheme: str) -> float:
        """The mean place of a scheme over the settings where it has a number."""
        places = [cell.place for cell in self.cells[scheme] if cell is not None]
        return sum(places) / len(places) if places else math.inf

    @property
    def leaves_out(self) -> bool:
        """True if a cell covers clearly fewer flows than others in its setting."""
        return any(cell is not None and cell.leaves_out for cells in self.cells.values() for cell in cells)

    @property
    def title(self) -> str:
        """The title of its table."""
        heading, _ = without_key(self.settings)
        by = f", by {heading}" if heading != "setting" and len(self.settings) > 1 else ""
        return f"Ranking by {self.metric.label}{by}, best first"

    def cell_text(self, cell: Cell | None, *, is_alone: bool = False) -> str:
        """The text of a cell, such as "2= 12.3 ms"; without the place if `is_alone`."""
        if cell is None:
            return "–"
        mark = UNFINISHED if cell.leaves_out else ""
        text = f"{quantity(cell.value, self.metric.unit)}{mark}"
        return text if is_alone else f"{place_text(cell)} {text}"

    def table(self, columns: int = COLUMNS) -> tuple[list[str], list[list[str]]]:
        """The headings and rows of a table with about `columns` columns of numbers.

        Settings are the columns if there are few of them; otherwise schemes are. If there are many of both, each row
        counts how often the scheme is first and last.
        """
        schemes = list(self.cells)
        heading, settings = without_key(self.settings)
        if len(self.settings) <= columns:
            names = [name or self.metric.label for name in settings]
            rows = [[name, *map(self.cell_text, self.cells[name])] for name in schemes]
            if len(names) == 1:
                rows = [
                    [place_text(cells[0]) if cells[0] else "–", name, self.cell_text(cells[0], is_alone=True)]
                    for name, cells in self.cells.items()
                ]
                return ["place", "scheme", *names], rows
            return ["scheme", *names], rows
        if len(schemes) <= columns:
            return [heading, *schemes], [
                [setting, *(self.cell_text(self.cells[name][place]) for name in schemes)]
                for place, setting in enumerate(settings)
            ]
        headings = ["scheme", "mean place", "first in", "last in", "smallest", "largest"]
        return headings, [self._summary(name) for name in schemes]

    def _summary(self, name: str) -> list[str]:
        last = [
            max((cells[place].place for cells in self.cells.values() if cells[place]), default=0)  # type: ignore[union-attr]
            for place in range(len(self.settings))
        ]
        known = [(cell, most) for cell, most in zip(self.cells[name], last, strict=True) if cell is not None]
        if not known:
            return [name, *["–"] * 5]
        values = [cell.value for cell, _ in known]
        return [
            name,
            f"{self.mean_place(name):.1f}",
            f"{sum(cell.place == 1 for cell, _ in known)} of {len(known)}",
            f"{sum(cell.place == most and most > 1 for cell, most in known)} of {len(known)}",
            quantity(min(values), self.metric.unit),
            quantity(max(values), self.metric.unit),
        ]


def place_text(cell: Cell) -> str:
    """The place of a cell, with "=" if it is shared."""
    return f"{cell.place}{'=' if cell.is_tied else ''}"


@dataclass(frozen=True, slots=True)
class _Entry:
    """The numbers of a scheme in a column, by setting and seed; and the settings in which nothing is random."""

    settings: Mapping[tuple[object, ...], Mapping[int, float]]
    exact: frozenset[tuple[object, ...]]


def rank(
    runs: pl.DataFrame,
    schemes: Sequence[str],
    metric: Metric,
    thresholds: Thresholds,
    exact: frozenset[tuple[str, str]] = frozenset(),
    by: Sequence[str] = (),
) -> Ranking | None:
    """Ranks schemes by their means in each setting.

    In order from the best, a scheme shares the place of the leader of its group if the two do not differ clearly, or
    differ negligibly. P-values are adjusted for all pairs of schemes in all settings.

    Args:
        runs: the rows, one for each number of each run.
        schemes: the schemes to rank.
        metric: the metric.
        thresholds: thresholds below which differences are negligible.
        exact: the settings and schemes in which nothing is random.
        by: the keys that define the columns; all keys that vary if empty.

    Returns:
        `None` if no scheme has a number.
    """
    rows = _rows(runs, schemes, metric, by)
    if rows.is_empty():
        return None
    keys = [key for key in [*axis_names(runs), *([SIZE] if SIZE in by else [])] if not rows[key].is_null().all()]
    # A key that applies to only some schemes distinguishes entries of the ranking, not settings.
    own = [key for key in keys if any(rows.filter(pl.col("scheme") == name)[key].is_null().all() for name in schemes)]
    shared = [key for key in keys if key not in own]
    # Settings that differ only in keys outside `by` are aggregated in one column.
    columns = [key for key in by if key in shared] if by else shared
    entries: dict[tuple[object, ...], dict[str, _Entry]] = {}
    for values, group in rows.group_by([*columns, "scheme", *own], maintain_order=True):
        column, (scheme, *rest) = values[: len(columns)], values[len(columns) :]
        words = [value_words(key, value, keys) for key, value in zip(own, rest, strict=True) if value is not None]
        entries.setdefault(column, {})[", ".join([str(scheme), *words])] = _entry(group, shared, exact)
    names = list(dict.fromkeys(name for found in entries.values() for name in found))
    finished = _finished(runs, schemes, columns, own, keys) if metric.covers_finished and SIZE not in by else {}
    means = {column: {name: _mean(one, metric) for name, one in found.items()} for column, found in entries.items()}
    changes = {column: _changes(found, metric) for column, found in entries.items()}
    apart = _apart(changes, thresholds.of(metric))
    ranked = {
        column: _cells(means[column], apart[column], finished.get(column, {}), is_falling=metric.better > 0)
        for column in entries
    }
    cells = {name: tuple(ranked[column].get(name) for column in ranked) for name in names}
    counts = [len(numbers) for found in entries.values() for one in found.values() for numbers in one.settings.values()]
    is_exact = all(one.exact >= set(one.settings) for found in entries.values() for one in found.values())
    settings = tuple(
        ", ".join(
            str(value) if key == SIZE else value_words(key, value, keys)
            for key, value in zip(columns, column, strict=True)
            if value is not None
        )
        for column in ranked
    )
    # Ties need an interval of each difference, or exact numbers.
    made = Ranking(metric, settings, cells, min(counts) >= 3 or is_exact, max(map(len, entries.values())))
    order = sorted(names, key=lambda name: (made.mean_place(name), _first_value(made, name)))
    return replace(made, cells={name: cells[name] for name in order})


def _first_value(made: Ranking, name: str) -> float:
    values = [cell.value for cell in made.cells[name] if cell is not None]
    return (-1 if made.metric.better > 0 else 1) * sum(values) / len(values)


def _rows(runs: pl.DataFrame, schemes: Sequence[str], metric: Metric, by: Sequence[str]) -> pl.DataFrame:
    chosen = sized(runs, metric) if SIZE in by else [metric]
    frames = []
    for one in chosen:
        traffic = (ALL, NETWORK) if one.traffic == ALL else (one.traffic,)
        some = runs.filter(
            (pl.col("metric") == one.metric)
            & (pl.col("average") == one.average)
            & pl.col("traffic").is_in(traffic)
            & pl.col("scheme").is_in(schemes)
            & pl.col("value").is_finite()
        )
        frames.append(some.with_columns(pl.lit(one.traffic).alias(SIZE)) if SIZE in by else some)
    return pl.concat(frames) if frames else runs.head(0)


def _entry(group: pl.DataFrame, shared: Sequence[str], exact: frozenset[tuple[str, str]]) -> _Entry:
    settings: dict[tuple[object, ...], dict[int, float]] = {}
    certain = set()
    columns = ["setting", "scheme", "value", "seeds", *shared]
    for setting, scheme, value, seeds, *values in group.select(columns).iter_rows():
        settings.setdefault(tuple(values), {})[seeds[0]] = value
        if (setting, scheme) in exact:
            certain.add(tuple(values))
    return _Entry(settings, frozenset(certain))


def _finished(
    runs: pl.DataFrame, schemes: Sequence[str], columns: Sequence[str], own: Sequence[str], keys: Sequence[str]
) -> dict[tuple[object, ...], dict[str, float]]:
    """The share of flows that finished, in percent, by column and entry."""
    rows = _rows(runs, schemes, Metric("finished flows", measure.TOTAL), ())
    found: dict[tuple[object, ...], dict[str, float]] = {}
    for values, group in rows.group_by([*columns, "scheme", *own], maintain_order=True):
        column, (scheme, *rest) = values[: len(columns)], values[len(columns) :]
        words = [value_words(key, value, keys) for key, value in zip(own, rest, strict=True) if value is not None]
        mean = float(np.mean(group["value"].to_numpy()))
        found.setdefault(column, {})[", ".join([str(scheme), *words])] = mean
    return found


def _mean(entry: _Entry, metric: Metric) -> float:
    """The mean over the seeds, and over the settings of a column."""
    return central(np.array([np.mean([*numbers.values()]) for numbers in entry.settings.values()]), metric)


def _cells(
    means: Mapping[str, float], apart: Set[frozenset[str]], finished: Mapping[str, float], *, is_falling: bool
) -> dict[str, Cell]:
    """The cells of one column."""
    groups: list[list[str]] = []
    for name in sorted(means, key=lambda name: -means[name] if is_falling else means[name]):
        if groups and frozenset((groups[-1][0], name)) not in apart:
            groups[-1].append(name)
        else:
            groups.append([name])
    most = max(finished.values(), default=0.0)
    cells, place = {}, 1
    for group in groups:
        for name in group:
            leaves_out = name in finished and most - finished[name] > DOUBTFUL_POINTS
            cells[name] = Cell(means[name], place, len(group) > 1, leaves_out)
        place += len(group)
    return cells


def _changes(found: Mapping[str, _Entry], metric: Metric) -> dict[frozenset[str], Change]:
    """The change between each pair of schemes in a column with common seeds."""
    changes = {}
    for first, second in itertools.combinations(found, 2):
        one, other = found[first], found[second]
        pairs = []
        for setting, numbers in one.settings.items():
            theirs = other.settings.get(setting, {})
            samples = {seed: (value, theirs[seed]) for seed, value in numbers.items() if seed in theirs}
            if samples:
                pairs.append(Pair("", {}, samples, setting in one.exact and setting in other.exact))
        if pairs:
            changes[frozenset((first, second))] = effect(pairs, metric)
    return changes


def _apart(
    changes: Mapping[_Column, Mapping[frozenset[str], Change]], least: float
) -> dict[_Column, set[frozenset[str]]]:
    """The pairs of schemes in each column that differ clearly and by at least the threshold.

    P-values are adjusted for all pairs of all columns. Without intervals, any difference counts.
    """
    every = [(column, pair, change) for column, found in changes.items() for pair, change in found.items()]
    ps = adjusted([change.p for *_, change in every])
    apart: dict[_Column, set[frozenset[str]]] = {column: set() for column in changes}
    for (column, pair, change), p in zip(every, ps, strict=True):
        is_known = p is not None or change.is_exact
        is_large = abs(change.value) >= least if is_known else change.value != 0
        if is_large and (p is None or p <= LEVEL):
            apart[column].add(pair)
    return apart

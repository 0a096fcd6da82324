"""Builds the panels of a sweep: metrics along a key, by flow size, as distributions, and against delay."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from sparelane import _native
from sparelane.common.folders import SavedResultsError
from sparelane.common.names import UnknownNameError
from sparelane.common.units import scale
from sparelane.reports.charts import scatter
from sparelane.reports.charts.panel import Line, Panel
from sparelane.results.rows import ALL, NETWORK
from sparelane.sweeps import measure
from sparelane.sweeps.axes import VAGUE
from sparelane.sweeps.folder import SavedSweep
from sparelane.sweeps.metrics import Metric

# The metrics along a key: panel, metric, average, title.
METRICS = (
    ("completion", "completion time", measure.MEAN, "Completion time, mean over flows"),
    ("completion-bytes", "completion time", measure.BYTES, "Completion time, mean over bytes"),
    ("completion-p99", "completion time", measure.P99, "Completion time, 99th percentile"),
    ("slowdown", "slowdown", measure.MEAN, "Slowdown, mean over flows"),
    ("requests", "completion time of requests", "mean over requests", "Completion time of requests, mean"),
    ("throughput", "throughput of a flow", measure.MEAN, "Throughput of a flow, mean"),
    ("goodput", "goodput", measure.TOTAL, "Goodput of all flows"),
    ("fairness", "fairness", "Jain's index", "Fairness (Jain's index)"),
    ("finished", "finished flows", measure.TOTAL, "Flows that finished"),
    ("retransmissions", "retransmissions", measure.TOTAL, "Retransmissions"),
    ("queueing", "queueing delay", measure.MEAN, "Queueing delay, mean over flows"),
    ("delay", "one-way delay", measure.MEAN, "One-way delay of packets, mean"),
    ("links", "use of the busiest link", measure.TIME, "Use of the busiest link"),
    ("dropped", "dropped packets", measure.TOTAL, "Dropped packets"),
)
# The largest numbers of combinations of the other keys, of lines of a panel, and of schemes of a panel; a note reports
# how many are omitted.
MOST_OTHERS = 4
MOST_LINES = 12
MOST_SCHEMES = 16
# If only schemes vary, up to this many are side by side; more become rows of a horizontal panel.
MOST_SIDE_BY_SIDE = 6
INTERVALS = "Bars are 95 % intervals over seeds."
# On a panel with a logarithmic horizontal axis, values that differ by this factor also get a logarithmic axis.
FAR_APART = 20.0
SCHEME = "scheme"
# The rates of the panel of throughput against delay, in order of preference, and the delays.
RATES = (("throughput of a flow", measure.MEAN), ("goodput", measure.TOTAL))
DELAY = "one-way delay"
TAIL = (DELAY, measure.P95_PACKETS)


@dataclass(frozen=True, slots=True)
class Axis:
    """The key on the horizontal axis.

    Attributes:
        key: the dotted key; empty if only schemes vary.
        label: the label of the axis.
        at: the position of each value of the key on the axis.
        places: the names of the positions, if the values are not numbers with a common unit.
        is_log: true if the axis is logarithmic, since the values are far apart.
    """

    key: str
    label: str
    at: Mapping[object, float]
    places: tuple[str, ...]
    is_log: bool


@dataclass(frozen=True, slots=True)
class Group:
    """The rows of a line: one scheme in one combination of the other keys.

    Attributes:
        scheme: the name of the scheme.
        setting: the other keys with their values, as text; empty if there is only one combination.
        rows: the rows.
    """

    scheme: str
    setting: str
    rows: pl.DataFrame

    @property
    def label(self) -> str:
        """The name in the legend."""
        return ", ".join(part for part in (self.scheme, self.setting) if part) or "all"

    def line(self, x: Sequence[float], y: Sequence[float], **details: Any) -> Line:
        """A line of this group."""
        return Line(self.label, x, y, group=self.scheme, variant=self.setting, **details)


def panels(
    saved: SavedSweep, key: str | None = None, where: Sequence[str] = (), first: Metric | None = None
) -> list[Panel]:
    """All panels with numbers of the sweep.

    Args:
        saved: the sweep.
        key: the key on the horizontal axis; by default the one with the most numeric values.
        where: conditions `KEY=VALUE`; only these values of the key are drawn. `scheme=NAME` selects schemes.
        first: the metric of the first panel; by default, panels are in their usual order.

    Raises:
        UnknownNameError: no such key varies, or it never has this value.
        SavedResultsError: a condition is not of the form `KEY=VALUE`.
    """
    saved = _where(saved, where)
    if saved.rows.is_empty():
        return []
    axis = _axis(saved, key)
    others = [name for name in saved.axes if name != axis.key]
    found = [_along(saved, axis, others, *metric) for metric in _ordered(first)]
    found += [
        *_by_size(saved, axis, others),
        *_distributions(saved, axis, others),
        *_against_delay(saved, axis, others),
    ]
    # The order of lines, and so their colours, do not depend on which panel comes first.
    order = {scheme: number for number, scheme in enumerate(saved.schemes)}
    return [
        replace(panel, lines=sorted(panel.lines, key=lambda line: order.get(line.group, len(order))))
        for panel in found
        if panel.lines
    ]


def _ordered(first: Metric | None) -> list[tuple[str, str, str, str]]:
    """The metrics along a key, with `first` in front, even if it is not one of `METRICS`."""
    if first is None:
        return [*METRICS]
    mine = [one for one in METRICS if one[1:3] == (first.metric, first.average)]
    title = first.label[:1].upper() + first.label[1:]
    chosen = mine[0] if mine else (first.name, first.metric, first.average, title)
    return [chosen, *(one for one in METRICS if one != chosen)]


def _where(saved: SavedSweep, where: Sequence[str]) -> SavedSweep:
    """Selects the rows that meet all conditions. Rows of schemes without a key meet its conditions."""
    wanted: dict[str, list[str]] = {}
    for text in where:
        key, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not value:
            raise SavedResultsError(f'"{text}" is not a condition; allowed: KEY=VALUE, as in --where queue.limit=1bdp')
        key = key if key == SCHEME else _key(saved, key)
        values = saved.rows[key].drop_nulls().unique(maintain_order=True).to_list()
        known = [_text(one) for one in values if one != ""]
        if value not in known:
            raise UnknownNameError(f"value of {key}", value, known)
        wanted.setdefault(key, []).append(value)
    tables = [saved.rows, saved.runs, saved.curves]
    for key, texts in wanted.items():
        values = [one for one in saved.rows[key].drop_nulls().unique().to_list() if _text(one) in texts]
        # Numbers of the network belong to a scheme if the scheme varies; otherwise their scheme is empty.
        tables = [table.filter(pl.col(key).is_in(values) | pl.col(key).is_null()) for table in tables]
    return replace(saved, rows=tables[0], runs=tables[1], curves=tables[2])


def _key(saved: SavedSweep, key: str) -> str:
    """The full name of a key, from its last parts.

    Raises:
        UnknownNameError: no key that varies ends with these parts, or several do.
        SavedResultsError: no key varies.
    """
    if not saved.axes:
        raise SavedResultsError(f'there is no key "{key}" here: only schemes and seeds vary in this sweep')
    matches = [name for name in saved.axes if f".{name}".endswith(f".{key}")]
    if len(matches) != 1:
        raise UnknownNameError("key that varies", key, saved.axes)
    return matches[0]


def _text(value: object) -> str:
    """A value of a key, as users write it."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def _axis(saved: SavedSweep, key: str | None) -> Axis:
    keys = [_key(saved, key)] if key is not None else saved.axes
    found = [_axis_of(saved.rows, name) for name in keys]
    varied = [axis for axis in found if key is not None or len(axis.at) > 1]
    if not varied:
        return Axis("", "", {}, ("",), is_log=False)
    return max(varied, key=lambda axis: (not axis.places, len(axis.at)))


def _axis_of(rows: pl.DataFrame, key: str) -> Axis:
    values = rows[key].drop_nulls().unique(maintain_order=True).to_list()
    short = _short(key)
    numbers = [(float(one), "") if isinstance(one, int | float) else _native.quantity(str(one)) for one in values]
    known = [one for one in numbers if one is not None]
    units = {unit for _, unit in known}
    if len(known) < len(values) or len(units) > 1 or len(values) < 2:
        at = {value: float(place) for place, value in enumerate(values)}
        return Axis(key, short, at, tuple(map(_text, values)), is_log=False)
    size, unit = scale(max(number for number, _ in known), units.pop())
    at = {value: number / size for value, (number, _) in zip(values, known, strict=True)}
    label = f"{short.replace('_', ' ')} ({unit})" if unit else short.replace("_", " ")
    ends = sorted(at.values())
    return Axis(key, label, at, (), is_log=ends[0] > 0 and ends[-1] / ends[0] >= 50)


def _short(key: str) -> str:
    """The last part of a key, or the last two if one is ambiguous."""
    parts = key.split(".")
    return ".".join(parts[-2:] if parts[-1] in VAGUE else parts[-1:])


def _groups(rows: pl.DataFrame, others: Sequence[str]) -> tuple[list[Group], str, str]:
    """The rows of each line, a text about keys that all lines share, and a note about omitted lines."""
    schemes = rows["scheme"].unique(maintain_order=True).to_list()
    notes = []
    if len(schemes) > MOST_SCHEMES:
        notes.append(f"Shown are {MOST_SCHEMES} of {len(schemes)} schemes; `plot --where scheme=NAME` chooses others.")
        schemes = schemes[:MOST_SCHEMES]
        rows = rows.filter(pl.col("scheme").is_in(schemes))
    varied = [key for key in others if rows[key].n_unique() > 1]
    # Keys that apply to every scheme, and keys that belong to some schemes.
    shared = [key for key in varied if rows[key].null_count() == 0]
    own = [key for key in varied if key not in shared]
    settings = rows.select(shared).unique(maintain_order=True) if shared else pl.DataFrame()
    of_scheme = {
        scheme: table.select(own).unique(maintain_order=True)
        for (scheme,), table in rows.group_by(["scheme"], maintain_order=True)
    }
    most = max(1, min(MOST_OTHERS, MOST_LINES // max(1, len(schemes))))
    most_own = min(most, max((table.height for table in of_scheme.values()), default=1)) if own else 1
    shown = settings.head(most // most_own)
    # Keys with the same value in all lines appear in the title instead of every label.
    single = [key for key in others if key not in varied or (key in shared and shown[key].n_unique() == 1)]
    labelled = [key for key in varied if key not in single]
    # Each combination of a scheme with the other keys is one line.
    found, count = [], 0
    for (scheme, *rest), group in rows.group_by(["scheme", *varied], maintain_order=True):
        values = dict(zip(varied, rest, strict=True))
        count += 1
        is_shown = not shared or tuple(values[key] for key in shared) in shown.rows()
        if is_shown and (not own or tuple(values[key] for key in own) in of_scheme[scheme].head(most_own).rows()):
            found.append(Group(str(scheme), _words({key: values[key] for key in labelled}), group))
    if len(found) < count:
        keys = ", ".join(map(_short, varied))
        notes.append(f"Shown are {len(found)} of {count} lines; `plot --where KEY=VALUE` chooses others, by {keys}.")
    common = _fixed(pl.concat([group.rows for group in found]), single) if found else ""
    return found, common, " ".join(notes)


def _words(values: Mapping[str, object]) -> str:
    """Keys with their values as text, without keys that do not apply."""
    return ", ".join(f"{_short(key)} = {_text(value)}" for key, value in values.items() if value is not None)


def _fixed(rows: pl.DataFrame, others: Sequence[str]) -> str:
    """The other keys with the same value in all rows, as text."""
    single = {key: rows[key].drop_nulls().unique().to_list() for key in others}
    return _words({key: values[0] for key, values in single.items() if len(values) == 1})


def _along(
    saved: SavedSweep, axis: Axis, others: Sequence[str], name: str, metric: str, average: str, title: str
) -> Panel:
    of_it = (pl.col("metric") == metric) & (pl.col("average") == average) & pl.col("traffic").is_in((ALL, NETWORK))
    rows = saved.rows.filter(of_it & pl.col("value").is_not_null())
    unit = measure.unit(metric)
    size, scaled_unit = scale(float(rows["value"].max() or 0.0), unit)  # type: ignore[arg-type]
    groups, common, left_out = _groups(rows, others)
    lines = [line for group in groups for line in _lines(group, axis, size)]
    if metric != "flows" and all(not any(line.y) for line in lines):
        lines = []
    places, label = axis.places, axis.label
    if not axis.key:
        lines, places = _side_by_side(lines)
    return Panel(
        name,
        _titled(title, common),
        label,
        f"{metric} ({scaled_unit})" if scaled_unit else metric,
        lines,
        is_x_log=axis.is_log,
        is_y_log=axis.is_log and bool(unit) and unit != "%" and _is_far_apart(lines),
        places=places,
        note=_notes(_intervals(lines), left_out),
        is_horizontal=not axis.key and len(places) > MOST_SIDE_BY_SIDE,
    )


def _is_far_apart(lines: Sequence[Line]) -> bool:
    """True if small values would be indistinguishable from zero on a linear axis."""
    values = [value for line in lines for value in (*line.y, *line.low)]
    return bool(values) and min(values) > 0 and max(values) / min(values) >= FAR_APART


def _notes(*texts: str, between: str = " ") -> str:
    return between.join(text for text in texts if text)


def _intervals(lines: Sequence[Line]) -> str:
    """The explanation of bars, if any are visible. One seed has no bars, and bars of equal numbers have no width."""
    is_wide = any(high > low for line in lines for low, high in zip(line.low, line.high, strict=True))
    return INTERVALS if is_wide else ""


def _lines(group: Group, axis: Axis, size: float) -> Iterator[Line]:
    """The line of a group along the axis; a reference line if the key does not apply to its scheme."""
    rows = group.rows.to_dicts()
    if not axis.key:
        yield from _line(group, [(0.0, one) for one in rows], size, is_marked=True, is_joined=False)
        return
    placed = [(axis.at[one[axis.key]], one) for one in rows if one[axis.key] is not None]
    # Places have no order, so points between them would have no meaning, and no line is drawn.
    yield from _line(group, placed, size, is_marked=True, is_joined=not axis.places)
    level = [(math.nan, one) for one in rows if one[axis.key] is None]
    yield from _line(group, level, size, is_marked=True, is_level=True)


def _line(
    group: Group, placed: Sequence[tuple[float, Mapping[str, Any]]], size: float, **details: Any
) -> Iterator[Line]:
    if placed:
        ordered = sorted(placed, key=lambda one: one[0])
        has_interval = all(row["low"] is not None for _, row in ordered)
        yield group.line(
            [x for x, _ in ordered],
            [row["value"] / size for _, row in ordered],
            low=[row["low"] / size for _, row in ordered] if has_interval else [],
            high=[row["high"] / size for _, row in ordered] if has_interval else [],
            **details,
        )


def _side_by_side(lines: Sequence[Line]) -> tuple[list[Line], tuple[str, ...]]:
    """Gives each line its own place, for sweeps without another key than the scheme."""
    placed = [replace(line, x=[float(place)]) for place, line in enumerate(lines)]
    return placed, tuple(line.label for line in lines)


def _at_one_place(rows: pl.DataFrame, axis: Axis, which: float) -> tuple[pl.DataFrame, str]:
    """The rows of one value of the key, chosen by its position on the axis from 0 to 1, and the value as text."""
    if not axis.key:
        return rows, ""
    values = sorted(axis.at, key=lambda value: axis.at[value])
    value = values[round(which * (len(values) - 1))]
    return rows.filter((pl.col(axis.key) == value) | pl.col(axis.key).is_null()), _words({axis.key: value})


def _by_size(saved: SavedSweep, axis: Axis, others: Sequence[str]) -> Iterator[Panel]:
    """Means by flow size, at the middle value of the key."""
    names = [name for name in measure.SIZE_RANGES if name in set(saved.rows["traffic"])]
    places = tuple(name.removeprefix("flows of ").removeprefix("flows ") for name in names)
    for name, metric, title in (
        ("completion-by-size", "completion time", "Completion time by size"),
        ("slowdown-by-size", "slowdown", "Slowdown by size"),
    ):
        of_it = (pl.col("metric") == metric) & (pl.col("average") == measure.MEAN) & pl.col("traffic").is_in(names)
        rows, words = _at_one_place(saved.rows.filter(of_it), axis, 0.5)
        groups, common, left_out = _groups(rows, others)
        lines = []
        for group in groups:
            found = {one["traffic"]: one for one in group.rows.to_dicts()}
            placed = [(float(place), found[traffic]) for place, traffic in enumerate(names) if traffic in found]
            lines += list(_line(group, placed, 1.0, is_marked=True))
        unit = measure.unit(metric)
        yield Panel(
            name,
            _titled(title, words, common),
            "size of the flows",
            f"{metric} ({unit})" if unit else metric,
            lines,
            is_y_log=True,
            places=places,
            note=_notes(_intervals(lines), left_out),
        )


def _titled(title: str, *words: str) -> str:
    return _notes(title, *words, between=", ")


def _distributions(saved: SavedSweep, axis: Axis, others: Sequence[str]) -> Iterator[Panel]:
    """Distributions of finished flows at the middle value of the key, as means of the quantiles over seeds."""
    for name, curve, title in (
        ("cdf", "completion time", "Distribution of completion times"),
        ("cdf-slowdown", "slowdown", "Distribution of slowdowns"),
    ):
        rows = saved.curves.filter((pl.col("curve") == curve) & (pl.col("traffic") == ALL))
        rows, words = _at_one_place(rows, axis, 0.5)
        groups, common, left_out = _groups(rows, others)
        lines = []
        for group in groups:
            mean = group.rows.group_by("share", maintain_order=True).agg(pl.col("value").mean()).sort("share")
            lines.append(group.line(mean["value"].to_list(), mean["share"].to_list()))
        unit = " (s)" if curve == "completion time" else " (completion / least possible)"
        yield Panel(
            name,
            _titled(title, words, common),
            f"{curve}{unit}",
            "share of finished flows",
            lines,
            is_x_log=True,
            note=_notes("Distributions are means of the quantiles over seeds.", left_out),
        )


def _against_delay(saved: SavedSweep, axis: Axis, others: Sequence[str]) -> Iterator[Panel]:
    """Throughput against delay at the middle value of the key, with a point for each seed."""
    rows, words = _at_one_place(saved.runs.filter(pl.col("traffic") == ALL), axis, 0.5)
    known = set(rows.select("metric", "average").unique().rows())
    rate = next((one for one in RATES if one in known), None)
    is_measured = (DELAY, measure.MEAN) in known
    name, short, note = ("mean one-way delay", "mean delay", "") if is_measured else scatter.UNMEASURED
    delays = [("throughput-delay", name, short, (DELAY if is_measured else "queueing delay", measure.MEAN), note)]
    delays.append(("throughput-delay-p95", "95th percentile of one-way delay", "95th percentile of delay", TAIL, ""))
    if rate is None:
        return
    groups, common, left_out = _groups(rows, others)
    for panel, name, short, delay, note in delays:
        clouds = [_cloud(group, rate, delay) for group in groups]
        title = _titled(f"Throughput against {short}", words, common)
        yield scatter.panel(panel, title, name, rate[0], clouds, "seeds", _notes(note, left_out))


def _cloud(group: Group, rate: tuple[str, str], delay: tuple[str, str]) -> scatter.Cloud:
    """The delay and the throughput of a group in each seed."""
    found = []
    for metric, average in (delay, rate):
        own = group.rows.filter((pl.col("metric") == metric) & (pl.col("average") == average))
        found.append(dict(zip(own["seeds"].list.first().to_list(), own["value"].to_list(), strict=True)))
    seeds = [seed for seed in found[0] if seed in found[1]]
    delays, rates = (np.array([one[seed] for seed in seeds], dtype=np.float64) for one in found)
    return scatter.Cloud(group.label, group.scheme, group.setting, delays, rates)

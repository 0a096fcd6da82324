"""What can be drawn of a sweep: numbers along a key that varies, by sizes of flows, and distributions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from sparelane.charts.panel import Line, Panel
from sparelane.names import UnknownNameError
from sparelane.results.rows import ALL, NETWORK
from sparelane.sweeps import measure
from sparelane.sweeps.axes import VAGUE
from sparelane.sweeps.folder import SavedSweep
from sparelane.units import read as read_quantity
from sparelane.units import scale

# What is drawn along the key that varies: panel, metric, average, title.
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
# Combinations of the other keys that have panels or lines of their own; more are left out, and that is said.
MOST_OTHERS = 4
INTERVALS = "Bars are 95 % intervals over seeds."


@dataclass(frozen=True, slots=True)
class Axis:
    """The key along which numbers are drawn.

    Attributes:
        key: dotted; empty where only schemes differ.
        label: of the axis.
        at: where each value of the column lies.
        places: names, where the values are no numbers.
        is_log: whether values are far apart.
    """

    key: str
    label: str
    at: Mapping[object, float]
    places: tuple[str, ...]
    is_log: bool


def panels(saved: SavedSweep, key: str | None = None) -> list[Panel]:
    """Every panel of which the sweep has numbers.

    Args:
        saved: the sweep.
        key: what to draw along; `None` takes the key with the most values that are numbers.

    Raises:
        UnknownNameError: no such key varies.
    """
    if saved.rows.is_empty():
        return []
    axis = _axis(saved, key)
    others = [name for name in saved.axes if name != axis.key]
    found = [_along(saved, axis, others, *metric) for metric in METRICS]
    found += [*_by_size(saved, axis, others), *_distributions(saved, axis, others)]
    return [panel for panel in found if panel.lines]


def _axis(saved: SavedSweep, key: str | None) -> Axis:
    keys = saved.axes
    matches = [name for name in keys if key is not None and f".{name}".endswith(f".{key}")]
    if key is not None and len(matches) != 1:
        raise UnknownNameError("key that varies", key, keys)
    if not keys:
        return Axis("", "", {}, ("",), is_log=False)
    found = [_axis_of(saved.rows, name) for name in (matches or keys)]
    return max(found, key=lambda axis: (not axis.places, len(axis.at)))


def _axis_of(rows: pl.DataFrame, key: str) -> Axis:
    values = rows[key].drop_nulls().unique(maintain_order=True).to_list()
    short = _short(key)
    numbers = [(float(one), "") if isinstance(one, int | float) else read_quantity(str(one)) for one in values]
    known = [one for one in numbers if one is not None]
    units = {unit for _, unit in known}
    if len(known) < len(values) or len(units) > 1 or len(values) < 2:
        at = {value: float(place) for place, value in enumerate(values)}
        return Axis(key, short, at, tuple(map(str, values)), is_log=False)
    size, unit = scale(max(number for number, _ in known), units.pop())
    at = {value: number / size for value, (number, _) in zip(values, known, strict=True)}
    label = f"{short.replace('_', ' ')} ({unit})" if unit else short.replace("_", " ")
    ends = sorted(at.values())
    return Axis(key, label, at, (), is_log=ends[0] > 0 and ends[-1] / ends[0] >= 50)


def _short(key: str) -> str:
    """The last part of a key, or two where one says too little."""
    parts = key.split(".")
    return ".".join(parts[-2:] if parts[-1] in VAGUE else parts[-1:])


def _groups(rows: pl.DataFrame, others: Sequence[str]) -> Iterator[tuple[str, str, pl.DataFrame]]:
    """Scheme, the other keys in words, and their rows."""
    seen: list[str] = []
    for values, group in rows.group_by(["scheme", *others], maintain_order=True):
        scheme, *rest = values
        words = ", ".join(
            f"{_short(key)} = {value:g}" if isinstance(value, float) else f"{_short(key)} = {value}"
            for key, value in zip(others, rest, strict=True)
            if value is not None
        )
        if words not in seen:
            seen.append(words)
        if len(set(seen)) <= MOST_OTHERS:
            yield str(scheme), words, group


def _label(scheme: str, words: str, is_alone: bool) -> str:
    parts = [part for part in (scheme, "" if is_alone else words) if part]
    return ", ".join(parts) or "all"


def _is_alone(rows: pl.DataFrame, others: Sequence[str]) -> bool:
    return rows.select(others).n_unique() <= 1 if others else True


def _left_out(rows: pl.DataFrame, others: Sequence[str]) -> str:
    count = rows.select(others).n_unique() if others else 1
    return "" if count <= MOST_OTHERS else f" Drawn are {MOST_OTHERS} of {count} combinations of the other keys."


def _along(
    saved: SavedSweep, axis: Axis, others: Sequence[str], name: str, metric: str, average: str, title: str
) -> Panel:
    of_it = (pl.col("metric") == metric) & (pl.col("average") == average) & pl.col("traffic").is_in((ALL, NETWORK))
    rows = saved.rows.filter(of_it & pl.col("value").is_not_null())
    unit = measure.unit(metric)
    size, told = scale(float(rows["value"].max() or 0.0), unit)  # type: ignore[arg-type]
    is_alone = _is_alone(rows, others)
    lines = []
    for scheme, words, group in _groups(rows, others):
        points = _points(group, axis, size)
        lines.append(Line(_label(scheme, words, is_alone), *points, is_marked=True))
    if metric != "flows" and all(not any(line.y) for line in lines):
        lines = []
    places, label = axis.places, axis.label
    if not axis.key:
        lines, places = _side_by_side(lines)
    return Panel(
        name,
        title,
        label,
        f"{metric} ({told})" if told else metric,
        lines,
        is_x_log=axis.is_log,
        places=places,
        note=_note(lines) + _left_out(rows, others),
    )


def _note(lines: Sequence[Line]) -> str:
    """What bars are, where there are any: one seed has none."""
    return INTERVALS if any(len(line.low) for line in lines) else ""


def _points(group: pl.DataFrame, axis: Axis, size: float) -> tuple[list[float], list[float], list[float], list[float]]:
    rows = [(axis.at.get(one.get(axis.key), 0.0), one["value"], one["low"], one["high"]) for one in group.to_dicts()]
    rows.sort(key=lambda row: row[0])
    has_interval = all(low is not None for _, _, low, _ in rows)
    return (
        [x for x, *_ in rows],
        [y / size for _, y, *_ in rows],
        [low / size for *_, low, _ in rows] if has_interval else [],
        [high / size for *_, high in rows] if has_interval else [],
    )


def _side_by_side(lines: Sequence[Line]) -> tuple[list[Line], tuple[str, ...]]:
    """Where only schemes differ, each has a place of its own."""
    placed = [
        Line(line.label, [float(place)], line.y, line.low, line.high, is_marked=True, is_joined=False)
        for place, line in enumerate(lines)
    ]
    return placed, tuple(line.label for line in lines)


def _at_one_place(rows: pl.DataFrame, axis: Axis, which: float) -> tuple[pl.DataFrame, str]:
    """The rows of one value of the key, by how far along it lies, 0 to 1; and which that is."""
    if not axis.key:
        return rows, ""
    values = sorted(axis.at, key=lambda value: axis.at[value])
    value = values[round(which * (len(values) - 1))]
    short = _short(axis.key)
    words = f"{short} = {value:g}" if isinstance(value, float) else f"{short} = {value}"
    return rows.filter((pl.col(axis.key) == value) | pl.col(axis.key).is_null()), words


def _by_size(saved: SavedSweep, axis: Axis, others: Sequence[str]) -> Iterator[Panel]:
    """Means by size of the flows, at the middle of the key."""
    names = [name for name in measure.SIZE_RANGES if name in set(saved.rows["traffic"])]
    places = tuple(name.removeprefix("flows of ").removeprefix("flows ") for name in names)
    for name, metric, title in (
        ("completion-by-size", "completion time", "Completion time by size"),
        ("slowdown-by-size", "slowdown", "Slowdown by size"),
    ):
        rows = saved.rows.filter((pl.col("metric") == metric) & pl.col("traffic").is_in(names))
        rows, words = _at_one_place(rows, axis, 0.5)
        is_alone = _is_alone(rows, others)
        lines = []
        for scheme, told, group in _groups(rows, others):
            found = {one["traffic"]: one for one in group.to_dicts()}
            some = [(place, found[traffic]) for place, traffic in enumerate(names) if traffic in found]
            has_interval = all(one["low"] is not None for _, one in some)
            lines.append(
                Line(
                    _label(scheme, told, is_alone),
                    [float(place) for place, _ in some],
                    [one["value"] for _, one in some],
                    [one["low"] for _, one in some] if has_interval else [],
                    [one["high"] for _, one in some] if has_interval else [],
                    is_marked=True,
                )
            )
        unit = measure.unit(metric)
        yield Panel(
            name,
            f"{title}{f', {words}' if words else ''}",
            "size of the flows",
            f"{metric} ({unit})" if unit else metric,
            lines,
            is_y_log=True,
            places=places,
            note=_note(lines) + _left_out(rows, others),
        )


def _distributions(saved: SavedSweep, axis: Axis, others: Sequence[str]) -> Iterator[Panel]:
    """Distributions of finished flows, the mean of the seeds' quantiles, at the middle of the key."""
    for name, curve, title in (
        ("cdf", "completion time", "Distribution of completion times"),
        ("cdf-slowdown", "slowdown", "Distribution of slowdowns"),
    ):
        rows = saved.curves.filter((pl.col("curve") == curve) & (pl.col("traffic") == ALL))
        rows, words = _at_one_place(rows, axis, 0.5)
        is_alone = _is_alone(rows, others)
        lines = []
        for scheme, told, group in _groups(rows, others):
            mean = group.group_by("share", maintain_order=True).agg(pl.col("value").mean()).sort("share")
            lines.append(Line(_label(scheme, told, is_alone), mean["value"].to_list(), mean["share"].to_list()))
        unit = " (s)" if curve == "completion time" else " (completion / least possible)"
        yield Panel(
            name,
            f"{title}{f', {words}' if words else ''}",
            f"{curve}{unit}",
            "share of finished flows",
            lines,
            is_x_log=True,
            note="Means of the quantiles over seeds." + _left_out(rows, others),
        )

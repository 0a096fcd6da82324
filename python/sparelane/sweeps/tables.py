"""Builds the tables of a sweep: rows of settings, rows of runs, and curves."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from sparelane.results.rows import ALL, SCHEMA, axis_kind
from sparelane.sweeps.intervals import Interval, mean_intervals
from sparelane.sweeps.journal import Kept
from sparelane.sweeps.measure import QUANTILES, unit
from sparelane.sweeps.plan import Plan, Setting

# Upper bounds of metrics, and of all metrics with a unit.
MOST = {"fairness": 1.0, "%": 100.0}

CURVES: Mapping[str, pl.DataType] = {
    "setting": pl.String(),
    "scheme": pl.String(),
    "traffic": pl.String(),
    "seed": pl.UInt64(),
    "curve": pl.String(),
    "share": pl.Float64(),
    "value": pl.Float64(),
}


def _axes(plan: Plan) -> dict[str, pl.DataType]:
    values = [plan.values(setting) for setting in plan.settings]
    return {axis.key: axis_kind(one[axis.key] for one in values) for axis in plan.setting_axes}


def _fit(values: Mapping[str, Any], kinds: Mapping[str, pl.DataType]) -> dict[str, Any]:
    """Converts values to the types of their columns."""
    return {
        key: str(value) if kinds[key] == pl.String() and value is not None else value for key, value in values.items()
    }


def _described(plan: Plan, kinds: Mapping[str, pl.DataType]) -> list[tuple[str, dict[str, Any]]]:
    """The text of each setting, and its values for their columns."""
    return [(plan.describe(setting), _fit(plan.values(setting), kinds)) for setting in plan.settings]


def of_runs(plan: Plan, kept: Mapping[str, Kept]) -> pl.DataFrame:
    """Returns one row for each number of each finished run."""
    kinds = _axes(plan)
    described = _described(plan, kinds)
    columns: dict[str, list[Any]] = {name: [] for name in ("scheme", "traffic", "metric", "average", "value")}
    places: list[int] = []
    seeds: list[int] = []
    for run in plan.runs:
        if run.name in kept:
            setting, numbers = plan.settings[run.setting], kept[run.name]["numbers"]
            # Numbers of the network have no scheme in a run; a single scheme takes them.
            only = _only_scheme(kept[run.name])
            for name, traffic, metric, average, value in numbers:
                whose = _scheme_and_traffic(setting, name, traffic, only)
                for column, cell in zip(columns.values(), (*whose, metric, average, value), strict=True):
                    column.append(cell)
            places += [run.setting] * len(numbers)
            seeds += [run.seed] * len(numbers)
    # Columns with a constant value are added to the finished frame.
    constant = {"experiment": plan.name, "low": None, "high": None, "paper": None, "reason": "", "check": ""}
    content = {
        **columns,
        "setting": [described[place][0] for place in places],
        "unit": list(map(unit, columns["metric"])),
        "seeds": seeds,
        **{key: [described[place][1][key] for place in places] for key in kinds},
    }
    schema = {**SCHEMA, **kinds}
    frame = pl.DataFrame(content, schema={**{name: schema[name] for name in content}, "seeds": pl.UInt64()})
    frame = frame.with_columns(pl.concat_list("seeds")).with_columns(
        pl.lit(value, dtype=SCHEMA[name]).alias(name) for name, value in constant.items()
    )
    return frame.select(list(schema))


def of_settings(runs: pl.DataFrame) -> pl.DataFrame:
    """Returns one row for each number of each setting: the mean over its runs, with Student's 95 % interval.

    Intervals are cut at the bounds of the metric: shares at 0 and 100 %, times at 0.
    """
    identity = [name for name in runs.columns if name not in ("value", "low", "high", "seeds")]
    gathered = runs.group_by(identity, maintain_order=True).agg("value", pl.col("seeds").list.first())
    values: list[list[float]] = gathered["value"].to_list()
    intervals = [
        _possible(interval, metric, group)
        for interval, metric, group in zip(mean_intervals(values), gathered["metric"], values, strict=True)
    ]
    return gathered.with_columns(
        value=pl.col("value").list.mean(),
        low=pl.Series([low for low, _ in intervals], dtype=pl.Float64),
        high=pl.Series([high for _, high in intervals], dtype=pl.Float64),
    ).select(runs.columns)


def _possible(interval: Interval, metric: str, values: Sequence[float]) -> Interval:
    """Cuts an interval at the bounds of its metric."""
    low, high = interval
    if low is None or high is None or not values or min(values) < 0:
        return interval
    most = MOST.get(metric, MOST.get(unit(metric), math.inf))
    return max(low, 0.0), min(high, max(most, *values))


def _only_scheme(kept: Kept) -> str:
    """The scheme of all flows of a run; empty if there are several."""
    names = {name for name, *_ in kept["numbers"] if name}
    return names.pop() if len(names) == 1 else ""


def _scheme_and_traffic(setting: Setting, name: str, traffic: str, only: str) -> tuple[str, str]:
    """The columns `scheme` and `traffic` for a number of the scheme `name` in a run."""
    if not setting.scheme:
        return (name or only, traffic)
    if name in setting.compared or not name:
        one_of_several = name and len(setting.compared) > 1
        return (setting.scheme, f"{name}, {traffic}" if one_of_several else traffic)
    return (setting.scheme, f"beside: {name}" if traffic == ALL else f"beside: {name}, {traffic}")


def of_curves(plan: Plan, kept: Mapping[str, Kept]) -> pl.DataFrame:
    """Returns quantiles of completion times and slowdowns, one row for each run, scheme and share of the flows."""
    columns: dict[str, list[Any]] = {name: [] for name in CURVES}
    kinds = _axes(plan)
    shares = QUANTILES.tolist()
    axes: dict[str, list[Any]] = {key: [] for key in kinds}
    described = _described(plan, kinds)
    for run in plan.runs:
        if run.name not in kept:
            continue
        setting = plan.settings[run.setting]
        text, values = described[run.setting]
        for name, curve, quantiles in kept[run.name]["curves"]:
            scheme, traffic = _scheme_and_traffic(setting, name, ALL, "")
            count = len(quantiles)
            repeated = {"setting": text, "scheme": scheme, "traffic": traffic, "seed": run.seed, "curve": curve}
            for column, value in repeated.items():
                columns[column] += [value] * count
            columns["share"] += shares
            columns["value"] += quantiles
            for key, value in values.items():
                axes[key] += [value] * count
    return pl.DataFrame({**columns, **axes}, schema={**CURVES, **kinds})

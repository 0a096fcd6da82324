"""The tables of a sweep: a row for each number of each setting, and one for each number of each run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from sparelane.results.rows import ALL, NETWORK, TidyRow, axis_kind, to_frame
from sparelane.sweeps.bootstrap import mean_interval
from sparelane.sweeps.journal import Kept
from sparelane.sweeps.measure import QUANTILES, unit
from sparelane.sweeps.plan import Plan, Run, Setting

# Scheme, traffic, metric and average: what a number is of, within a setting.
Subject = tuple[str, str, str, str]

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
    """Values as their columns take them."""
    return {key: str(value) if kinds[key] == pl.String() and value is not None else value for key, value in values.items()}


def of_runs(plan: Plan, kept: Mapping[str, Kept]) -> pl.DataFrame:
    """One row for each number of each run that is done."""
    kinds = _axes(plan)
    return to_frame((row for _, row in _run_rows(plan, kept, kinds)), kinds)


def of_settings(plan: Plan, kept: Mapping[str, Kept]) -> pl.DataFrame:
    """One row for each number of each setting: the mean over its seeds, with an interval."""
    kinds = _axes(plan)
    gathered: dict[tuple[int, Subject], list[TidyRow]] = {}
    for run, row in _run_rows(plan, kept, kinds):
        subject = (row.scheme, row.traffic, row.metric, row.average)
        gathered.setdefault((run.setting, subject), []).append(row)
    return to_frame((_mean(rows) for rows in gathered.values()), kinds)


def _mean(rows: Sequence[TidyRow]) -> TidyRow:
    values = np.array([row.value for row in rows], dtype=np.float64)
    low, high = mean_interval(values) or (None, None)
    seeds = [seed for row in rows for seed in row.seeds]
    return replace(rows[0], value=float(values.mean()), low=low, high=high, seeds=seeds)


def _run_rows(
    plan: Plan, kept: Mapping[str, Kept], kinds: Mapping[str, pl.DataType]
) -> Iterator[tuple[Run, TidyRow]]:
    told = [(plan.words(setting), _fit(plan.values(setting), kinds)) for setting in plan.settings]
    for run in plan.runs:
        if run.name not in kept:
            continue
        setting = plan.settings[run.setting]
        words, axes = told[run.setting]
        only = _only_scheme(kept[run.name])
        for name, traffic, metric, average, value in kept[run.name]["numbers"]:
            scheme, of_which = _whose(setting, name, traffic, only)
            yield (
                run,
                TidyRow(plan.name, words, scheme, of_which, metric, average, value, unit(metric), [run.seed], axes=axes),
            )


def _only_scheme(kept: Kept) -> str:
    """The scheme of all flows of a run, where there is only one."""
    names = {name for name, *_ in kept["numbers"] if name}
    return names.pop() if len(names) == 1 else ""


def _whose(setting: Setting, name: str, traffic: str, only: str) -> tuple[str, str]:
    """Whose number it is, and of which flows, of one that a run gave for the scheme called `name`."""
    if not setting.scheme:
        return (name or only, traffic)
    if name in setting.compared or not name:
        one_of_several = name and len(setting.compared) > 1
        return (setting.scheme, f"{name}, {traffic}" if one_of_several else traffic)
    return (setting.scheme, f"beside: {name}" if traffic == ALL else f"beside: {name}, {traffic}")


def of_curves(plan: Plan, kept: Mapping[str, Kept]) -> pl.DataFrame:
    """Quantiles of completion times and slowdowns: a row for each run, scheme and share of the flows."""
    columns: dict[str, list[Any]] = {name: [] for name in CURVES}
    kinds = _axes(plan)
    shares = QUANTILES.tolist()
    axes: dict[str, list[Any]] = {key: [] for key in kinds}
    for run in plan.runs:
        if run.name not in kept:
            continue
        setting = plan.settings[run.setting]
        words, values = plan.words(setting), _fit(plan.values(setting), kinds)
        for name, curve, quantiles in kept[run.name]["curves"]:
            scheme, traffic = _whose(setting, name, ALL, "")
            count = len(quantiles)
            repeated = {"setting": words, "scheme": scheme, "traffic": traffic, "seed": run.seed, "curve": curve}
            for column, value in repeated.items():
                columns[column] += [value] * count
            columns["share"] += shares
            columns["value"] += quantiles
            for key, value in values.items():
                axes[key] += [value] * count
    return pl.DataFrame({**columns, **axes}, schema={**CURVES, **kinds})


__all__ = ["CURVES", "NETWORK", "of_curves", "of_runs", "of_settings"]

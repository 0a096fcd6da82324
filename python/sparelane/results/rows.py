"""Tidy rows: one number each, with everything that tells it from the others in columns of their own.

The table has the columns of `SCHEMA` in this order, and after them one column for each key that varies, named as
`--set` takes it (`workload.load`). Sweeps write such tables, and experiments can.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from sparelane.common.folders import SavedResultsError

SCHEMA: Mapping[str, pl.DataType] = {
    "experiment": pl.String(),
    "setting": pl.String(),
    "scheme": pl.String(),
    "traffic": pl.String(),
    "metric": pl.String(),
    "average": pl.String(),
    "value": pl.Float64(),
    "low": pl.Float64(),
    "high": pl.Float64(),
    "paper": pl.Float64(),
    "unit": pl.String(),
    "reason": pl.String(),
    "check": pl.String(),
    "seeds": pl.List(pl.UInt64()),
}

AxisValue = int | float | str | bool | None


@dataclass(frozen=True, slots=True)
class TidyRow:
    """One number.

    Attributes:
        experiment: what was asked: the name of the sweep, or the id of an experiment.
        setting: the keys that vary with their values, for people; empty where nothing varies.
        scheme: whose number it is; empty where it is of no scheme.
        traffic: of which flows of the run: `ALL`, a range of sizes, or the scheme of flows beside those compared.
        metric: what is measured.
        average: what kind of number of the flows it is, such as "mean over flows".
        value: the number, or the mean of it over the seeds; `None` where no run gave it.
        low: the lower end of its 95 % interval over the seeds; `None` without repetitions.
        high: the upper end.
        paper: the number that a paper prints; `None` where none does.
        unit: of all four numbers.
        reason: why ours differs from the paper's, where it does.
        check: what became of a claim about it: "holds", "fails" or nothing.
        seeds: of the runs that gave the number.
        axes: the value of each key that varies; `None` where the key does not matter to the scheme.
    """

    experiment: str
    setting: str
    scheme: str
    traffic: str
    metric: str
    average: str
    value: float | None
    unit: str
    seeds: Sequence[int]
    low: float | None = None
    high: float | None = None
    paper: float | None = None
    reason: str = ""
    check: str = ""
    axes: Mapping[str, AxisValue] = field(default_factory=dict)


# What `traffic` says of numbers that cover every flow of the scheme.
ALL = "all flows"
# What it says of numbers of the network as a whole.
NETWORK = "network"


def to_frame(rows: Iterable[TidyRow], axes: Mapping[str, pl.DataType] | None = None) -> pl.DataFrame:
    """The rows as a table, with a column for each of the axes.

    Raises:
        ValueError: an axis has the name of another column.
    """
    kinds = dict(axes or {})
    clash = next((name for name in kinds if name in SCHEMA), None)
    if clash is not None:
        raise ValueError(f'the axis "{clash}" has the name of another column')
    listed = list(rows)
    columns: dict[str, Any] = {name: [getattr(row, name) for row in listed] for name in SCHEMA}
    columns["seeds"] = [list(row.seeds) for row in listed]
    columns |= {name: [row.axes.get(name) for row in listed] for name in kinds}
    return pl.DataFrame(columns, schema={**SCHEMA, **kinds}, strict=True)


def axis_kind(values: Iterable[AxisValue]) -> pl.DataType:
    """What kind of column holds these values: whole numbers, numbers, or text."""
    known = [value for value in values if value is not None]
    if known and all(isinstance(value, int) and not isinstance(value, bool) for value in known):
        return pl.Int64()
    if known and all(isinstance(value, int | float) and not isinstance(value, bool) for value in known):
        return pl.Float64()
    return pl.String()


def axis_names(frame: pl.DataFrame) -> list[str]:
    """The keys that vary in a table of rows."""
    return frame.columns[len(SCHEMA) :]


def read(path: Path) -> pl.DataFrame:
    """A table of rows from a Parquet file.

    Raises:
        SavedResultsError: the file cannot be read, or holds something else.
    """
    try:
        frame = pl.read_parquet(path)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise SavedResultsError(f'cannot read "{path}": {error}') from error
    if frame.columns[: len(SCHEMA)] != list(SCHEMA):
        raise SavedResultsError(f'"{path}" does not hold rows as this version saves them')
    return frame

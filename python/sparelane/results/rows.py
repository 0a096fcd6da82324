"""Tidy rows: each row has one number, with columns for everything that identifies it.

The table has the columns of `SCHEMA` in this order, followed by one column for each key that varies, named as in
`--set` (`workload.load`). Sweeps and experiments write such tables.
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
    """One number with its description.

    Attributes:
        experiment: the name of the sweep, or the id of the experiment.
        setting: the keys that vary with their values, as text; empty if nothing varies.
        scheme: the scheme that was measured; empty for numbers of the network.
        traffic: the flows that the number covers: `ALL`, a range of sizes, `NETWORK`, or the scheme of other flows in
            the same run.
        metric: the measured quantity.
        average: the kind of mean or percentile over flows, such as "mean over flows".
        value: the number, or its mean over the seeds; `None` if no run has it.
        low: the lower end of the 95 % interval over the seeds; `None` without repetitions.
        high: the upper end of the interval.
        paper: the number in a paper; `None` if the paper prints no number.
        unit: the unit of all four numbers.
        reason: the reason for a difference from the paper; may be empty.
        check: the outcome of a claim about the number: "holds", "fails" or empty.
        seeds: the seeds of the runs behind the number.
        axes: the value of each key that varies; `None` if the key does not apply to the scheme.
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


# The value of `traffic` for numbers of all flows of the scheme.
ALL = "all flows"
# The value of `traffic` for numbers of the whole network.
NETWORK = "network"


def to_frame(rows: Iterable[TidyRow], axes: Mapping[str, pl.DataType] | None = None) -> pl.DataFrame:
    """Builds a table of rows, with a column for each axis.

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
    """The type of a column for these values: integers, floats, or text."""
    known = [value for value in values if value is not None]
    if known and all(isinstance(value, int) and not isinstance(value, bool) for value in known):
        return pl.Int64()
    if known and all(isinstance(value, int | float) and not isinstance(value, bool) for value in known):
        return pl.Float64()
    return pl.String()


def axis_names(frame: pl.DataFrame) -> list[str]:
    """The names of the axis columns of a table of rows."""
    return frame.columns[len(SCHEMA) :]


def read(path: Path) -> pl.DataFrame:
    """Reads a table of rows from a Parquet file.

    Raises:
        SavedResultsError: the file cannot be read, or does not hold rows.
    """
    try:
        frame = pl.read_parquet(path)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise SavedResultsError(f'cannot read "{path}": {error}') from error
    if frame.columns[: len(SCHEMA)] != list(SCHEMA):
        raise SavedResultsError(f'"{path}" does not hold rows as this version saves them')
    return frame

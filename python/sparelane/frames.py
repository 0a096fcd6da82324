"""Columns of the simulator as Polars tables, and tables as files."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np
import polars as pl
from numpy.typing import NDArray

if TYPE_CHECKING:
    from sparelane._native import Column


def to_frame(columns: Mapping[str, Column]) -> pl.DataFrame:
    """A table from the simulator's columns: missing numbers become null, repeated texts categories."""
    return pl.DataFrame([_to_series(name, column) for name, column in columns.items()])


def _to_series(name: str, column: Column) -> pl.Series:
    if not isinstance(column, tuple):
        return pl.Series(name, column)
    if len(column) == 3:
        codes, texts, mask = column
        return _categories(name, texts).gather(_masked(name, codes, mask)).cast(pl.Categorical)
    values, detail = column
    if isinstance(detail, list):
        return _categories(name, detail).gather(cast("NDArray[np.uint32]", values)).cast(pl.Categorical)
    return _masked(name, values, detail)


def _categories(name: str, texts: list[str]) -> pl.Series:
    return pl.Series(name, texts, dtype=pl.String)


def _masked(name: str, values: NDArray[np.generic], mask: NDArray[np.bool_]) -> pl.Series:
    return pl.select(pl.when(pl.Series(mask)).then(pl.Series(name, values)).alias(name)).to_series()


def write_parquet(frame: pl.DataFrame, path: Path) -> None:
    """The table as Parquet, compressed."""
    frame.write_parquet(path, compression="zstd")


def write_csv(frame: pl.DataFrame, path: Path) -> None:
    """The table as CSV with a header; missing numbers are empty."""
    frame.write_csv(path)


def write_json(frame: pl.DataFrame, path: Path) -> None:
    """The table as a JSON list of rows; missing numbers are null."""
    frame.write_json(path)


WRITERS: Mapping[str, Callable[[pl.DataFrame, Path], None]] = {
    "parquet": write_parquet,
    "csv": write_csv,
    "json": write_json,
}


def write_json_value(value: object, path: Path) -> None:
    """Any value of JSON, indented, with a final newline."""
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")

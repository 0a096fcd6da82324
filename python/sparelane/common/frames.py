"""Conversions between columns of the simulator, Polars data frames, and files in Parquet, CSV and JSON."""

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
    """Builds a data frame from the simulator's columns. Masked numbers become null, and codes become categories."""
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


def to_columns(frame: pl.DataFrame) -> dict[str, Column]:
    """The columns of a data frame in the simulator's form; the inverse of `to_frame`."""
    return {series.name: _to_column(series) for series in frame}


def _to_column(series: pl.Series) -> Column:
    mask = None if not series.null_count() else series.is_not_null().to_numpy()
    if series.dtype in (pl.Categorical, pl.String):
        texts = series.cast(pl.String)
        names = texts.drop_nulls().unique(maintain_order=True)
        codes = texts.cast(pl.Enum(names)).to_physical().cast(pl.UInt32).fill_null(0).to_numpy()
        return (codes, names.to_list()) if mask is None else (codes, names.to_list(), mask)
    values = series.fill_null(False if series.dtype == pl.Boolean else 0).to_numpy()
    return values if mask is None else (values, mask)


def types_of(frame: pl.DataFrame) -> dict[str, str]:
    """The type of each column by name. `run.json` stores them for formats without types."""
    return {name: type(kind).__name__ for name, kind in frame.schema.items()}


def write_parquet(frame: pl.DataFrame, path: Path) -> None:
    """Writes a data frame as compressed Parquet."""
    frame.write_parquet(path, compression="zstd")


def write_csv(frame: pl.DataFrame, path: Path) -> None:
    """Writes a data frame as CSV with a header. Nulls are empty cells."""
    frame.write_csv(path)


def write_json(frame: pl.DataFrame, path: Path) -> None:
    """Writes a data frame as a JSON list of rows."""
    frame.write_json(path)


WRITERS: Mapping[str, Callable[[pl.DataFrame, Path], None]] = {
    "parquet": write_parquet,
    "csv": write_csv,
    "json": write_json,
}


# The types of columns of results, by the names that `types_of` uses.
TYPES: Mapping[str, type[pl.DataType]] = {
    kind.__name__: kind
    for kind in (pl.UInt32, pl.UInt64, pl.Int32, pl.Int64, pl.Float64, pl.Boolean, pl.Categorical, pl.String)
}


def read_parquet(path: Path, types: Mapping[str, str] | None) -> pl.DataFrame:
    """Reads a data frame from Parquet, which stores its types."""
    return pl.read_parquet(path)


def read_csv(path: Path, types: Mapping[str, str] | None) -> pl.DataFrame:
    """Reads a data frame from CSV. Empty cells are null.

    Args:
        path: the file.
        types: the type of each column, from `types_of`.

    Raises:
        ValueError: `types` is `None`, or the file has other columns.
        polars.exceptions.PolarsError: the file is malformed.
    """
    known = _known(types)
    # A table without columns makes an empty file, which Polars rejects.
    return _as_declared(pl.read_csv(path, schema_overrides=_plain(known)), known) if known else pl.DataFrame()


def read_json(path: Path, types: Mapping[str, str] | None) -> pl.DataFrame:
    """Reads a data frame from a JSON list of rows. Arguments and errors are those of `read_csv`."""
    known = _known(types)
    return _as_declared(pl.read_json(path, schema=_plain(known)), known) if known else pl.DataFrame()


def _plain(types: Mapping[str, type[pl.DataType]]) -> dict[str, type[pl.DataType]]:
    """The types for a reader of text files, with categories read as strings first."""
    return {name: pl.String if kind == pl.Categorical else kind for name, kind in types.items()}


def _known(types: Mapping[str, str] | None) -> dict[str, type[pl.DataType]]:
    if types is None:
        raise ValueError("run.json does not state the types of its columns; repeat the run with `sparelane run` on it")
    return {name: TYPES[kind] for name, kind in types.items()}


def _as_declared(frame: pl.DataFrame, types: Mapping[str, type[pl.DataType]]) -> pl.DataFrame:
    if frame.columns != list(types):
        raise ValueError(f"its columns are {', '.join(frame.columns)}; run.json states {', '.join(types)}")
    return frame.with_columns(pl.col(name).cast(kind) for name, kind in types.items())


# Readers in the order in which they are tried. Parquet comes first, since it stores types.
READERS: Mapping[str, Callable[[Path, Mapping[str, str] | None], pl.DataFrame]] = {
    "parquet": read_parquet,
    "csv": read_csv,
    "json": read_json,
}


def write_json_value(value: object, path: Path) -> None:
    """Writes a value as indented JSON with a final newline."""
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")

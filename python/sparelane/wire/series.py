"""Writes time series of transfers and tunnels to a Parquet file, in parts that are joined at the end."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from sparelane._native import WireError
from sparelane.common import frames

if TYPE_CHECKING:
    from sparelane._native import Column

# The number of rows in memory before a part is written, about 5 MB.
PART_ROWS = 100_000


class SeriesFile:
    """A Parquet file of time series, with the simulator's columns.

    To bound memory, rows are written to parts in the folder `FILE.parts`, which `close` joins into the file. A killed
    process leaves the parts, which can be read.

    Raises:
        WireError: the file cannot be created.
    """

    def __init__(self, path: Path, part_rows: int = PART_ROWS) -> None:
        self._path = path
        self._parts = path.with_name(path.name + ".parts")
        self._part_rows = part_rows
        self._frames: list[pl.DataFrame] = []
        self._rows = 0
        self._written: list[Path] = []
        try:
            if path.is_dir():
                raise IsADirectoryError(21, "it is a folder")
            self._parts.mkdir()
        except OSError as error:
            raise WireError(f"{path}: time series cannot be written: {error.strerror}") from error

    def add(self, columns: dict[str, Column]) -> None:
        """Appends rows."""
        frame = frames.to_frame(columns)
        if frame.is_empty():
            return
        self._frames.append(frame.with_columns(pl.col("probe", "quantity").cast(pl.String)))
        self._rows += frame.height
        if self._rows >= self._part_rows:
            self._write_part()

    def _write_part(self) -> None:
        if not self._frames:
            return
        path = self._parts / f"{len(self._written):06}.parquet"
        try:
            frames.write_parquet(pl.concat(self._frames), path)
        except OSError as error:
            raise WireError(f"{path}: time series cannot be written: {error}") from error
        self._written.append(path)
        self._frames, self._rows = [], 0

    def close(self) -> None:
        """Joins the parts into the file, and removes them."""
        if not self._written and not self._frames:
            self._frames = [_EMPTY]
        self._write_part()
        whole = self._parts / "whole.parquet"
        parts = pl.scan_parquet(self._written)
        try:
            parts.with_columns(pl.col("probe", "quantity").cast(pl.Categorical)).sink_parquet(whole, compression="zstd")
            whole.replace(self._path)
        except OSError as error:
            raise WireError(f"{self._path}: time series cannot be written: {error}") from error
        shutil.rmtree(self._parts, ignore_errors=True)


_EMPTY = pl.DataFrame(schema={"time_s": pl.Float64, "probe": pl.String, "quantity": pl.String, "value": pl.Float64})

"""Telemetry of senders, receivers and tunnels: time series in a Parquet file, and metrics for Prometheus."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from sparelane._native import WireError

if TYPE_CHECKING:
    from sparelane._native import Column
    from sparelane.wire.metrics_server import MetricsServer
    from sparelane.wire.series import SeriesFile


# Shortest intervals between collecting samples, and between updates of the metrics, seconds.
COLLECT_S = 0.1
METRICS_S = 1.0


class Native(Protocol):
    """The native sender, receiver or tunnel."""

    def take_samples(self) -> tuple[dict[str, Column], int, str | None]:
        """Returns new samples, the number of dropped rows, and the error that ended the qlog, if any."""

    def exposition(self) -> str:
        """The metrics in Prometheus's text format."""


def metrics_address(text: str) -> tuple[str, int]:
    """Parses `PORT`, which means localhost, or `ADDR:PORT`.

    Raises:
        WireError: the text has another form.
    """
    host, _, port = text.rpartition(":")
    if not (port.isascii() and port.isdigit() and int(port) <= 65535):
        raise WireError(f'metrics at "{text}": allowed: PORT or ADDR:PORT, with a port up to 65535')
    return host or "127.0.0.1", int(port)


def _metrics_server(address: str) -> MetricsServer:
    # Imported here like Polars below, since the modules of HTTP are slow to import, too.
    from sparelane.wire.metrics_server import MetricsServer

    return MetricsServer(*metrics_address(address))


def _series_file(path: Path) -> SeriesFile:
    # Imported here, since Polars is slow to import and most transfers write no series.
    from sparelane.wire.series import SeriesFile

    return SeriesFile(path)


class Telemetry:
    """The requested telemetry of one sender, receiver or tunnel."""

    def __init__(self, series: Path | str | None, metrics: str | None) -> None:
        self._series = _series_file(Path(series)) if series is not None else None
        try:
            self._server = _metrics_server(metrics) if metrics is not None else None
        except BaseException:
            if self._series is not None:
                self._series.close()
            raise
        self._next = self._next_metrics = 0.0
        self.missed_rows = 0
        self.qlog_error: str | None = None

    @property
    def metrics_address(self) -> str | None:
        """The address of the metrics; `None` if they are off."""
        return self._server.address if self._server is not None else None

    def collect(self, native: Native, *, at_once: bool = False) -> None:
        """Takes new samples and updates the metrics, unless the last time was too recent."""
        now = time.monotonic()
        if now < self._next and not at_once:
            return
        self._next = now + COLLECT_S
        columns, missed, error = native.take_samples()
        self.missed_rows += missed
        self.qlog_error = self.qlog_error or error
        if self._series is not None:
            self._series.add(columns)
        if self._server is not None and (now >= self._next_metrics or at_once):
            self._next_metrics = now + METRICS_S
            self._server.text = native.exposition()

    def close(self, native: Native | None) -> None:
        """Collects the last samples, and closes files and the server.

        Raises:
            WireError: a file could not be written completely.
        """
        try:
            if native is not None:
                self.collect(native, at_once=True)
        finally:
            if self._server is not None:
                with suppress(OSError):
                    self._server.close()
            if self._series is not None:
                self._series.close()
        if self.qlog_error is not None:
            raise WireError(f"the qlog ended early: {self.qlog_error}")
        if self.missed_rows:
            raise WireError(f"{self.missed_rows} rows of the time series were dropped, since the buffer was full")

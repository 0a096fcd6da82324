"""What a sender, a receiver or a tunnel tells of itself: time series in a Parquet file, and numbers for Prometheus."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from sparelane._native import WireError

if TYPE_CHECKING:
    from sparelane._native import Column
    from sparelane.wire.series import SeriesFile


# Samples are taken from Rust, and metrics made, so often at most, seconds.
TEND_S = 0.1
METRICS_S = 1.0

# A client of the metrics has so long to say what it wants, and to take the answer, seconds.
PATIENCE_S = 2.0


class Native(Protocol):
    """What is watched."""

    def take_samples(self) -> tuple[dict[str, Column], int, str | None]:
        """Columns, rows that had no room, and why the qlog ended early."""

    def exposition(self) -> str:
        """What a Prometheus server is told."""


class MetricsServer:
    """Answers `GET /metrics` with the latest text, one client at a time, in a thread of its own.

    Raises:
        WireError: the address cannot be had.
    """

    def __init__(self, host: str, port: int) -> None:
        self.text = ""
        outer = self

        class Handler(BaseHTTPRequestHandler):
            timeout = PATIENCE_S

            def do_GET(self) -> None:
                if self.path.partition("?")[0] != "/metrics":
                    self.send_error(404, "what there is: /metrics")
                    return
                body = outer.text.encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                """Says nothing."""

        class Server(HTTPServer):
            def handle_error(self, *_: Any) -> None:
                """A client that goes away is nobody's mistake here."""

        try:
            self._server = Server((host, port), Handler)
        except OSError as error:
            raise WireError(f"metrics at {host}:{port}: {error.strerror or error}") from error
        self._thread = threading.Thread(target=self._server.serve_forever, name="metrics", daemon=True)
        self._thread.start()

    @property
    def address(self) -> str:
        """Where it listens."""
        host, port = self._server.server_address[:2]
        return f"{host!s}:{port}"

    def close(self) -> None:
        """Answers nobody any more."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(2 * PATIENCE_S)


def metrics_address(text: str) -> tuple[str, int]:
    """The address of `PORT`, which is of this host alone, or of `ADDR:PORT`.

    Raises:
        WireError: it is neither.
    """
    host, _, port = text.rpartition(":")
    if not (port.isascii() and port.isdigit() and int(port) <= 65535):
        raise WireError(f'metrics at "{text}": PORT or ADDR:PORT is allowed, with a port up to 65535')
    return host or "127.0.0.1", int(port)


def _series_file(path: Path) -> SeriesFile:
    # Whoever asks for no series does not wait for what tables need.
    from sparelane.wire.series import SeriesFile

    return SeriesFile(path)


class Watch:
    """All that is asked for of one sender, receiver or tunnel."""

    def __init__(self, series: Path | str | None, metrics: str | None) -> None:
        self._series = _series_file(Path(series)) if series is not None else None
        try:
            self._server = MetricsServer(*metrics_address(metrics)) if metrics is not None else None
        except BaseException:
            if self._series is not None:
                self._series.close()
            raise
        self._next = self._next_metrics = 0.0
        self.missed_rows = 0
        self.qlog_error: str | None = None

    @property
    def metrics_address(self) -> str | None:
        """Where metrics are, if they are asked for."""
        return self._server.address if self._server is not None else None

    def tend(self, native: Native, *, at_once: bool = False) -> None:
        """Takes what there is, if it is time."""
        now = time.monotonic()
        if now < self._next and not at_once:
            return
        self._next = now + TEND_S
        columns, missed, error = native.take_samples()
        self.missed_rows += missed
        self.qlog_error = self.qlog_error or error
        if self._series is not None:
            self._series.add(columns)
        if self._server is not None and (now >= self._next_metrics or at_once):
            self._next_metrics = now + METRICS_S
            self._server.text = native.exposition()

    def close(self, native: Native | None) -> None:
        """Takes the last, and ends all.

        Raises:
            WireError: something could not be written.
        """
        try:
            if native is not None:
                self.tend(native, at_once=True)
        finally:
            if self._server is not None:
                with suppress(OSError):
                    self._server.close()
            if self._series is not None:
                self._series.close()
        if self.qlog_error is not None:
            raise WireError(f"the qlog ended early: {self.qlog_error}")
        if self.missed_rows:
            raise WireError(f"the time series lack {self.missed_rows} rows, for which there was no room")

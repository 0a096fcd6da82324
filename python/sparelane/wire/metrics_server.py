"""Serves metrics for Prometheus over HTTP."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

from sparelane._native import WireError

# Time for a client of the metrics to send its request, and to read the response, seconds.
CLIENT_TIMEOUT_S = 2.0


class MetricsServer:
    """Answers `GET /metrics` with the latest text, one client at a time, in its own thread.

    Raises:
        WireError: the address is not available.
    """

    def __init__(self, host: str, port: int) -> None:
        self.text = ""
        # The handler reads the latest text; the server creates a handler for each request.
        outer = self

        class Handler(BaseHTTPRequestHandler):
            timeout = CLIENT_TIMEOUT_S

            def do_GET(self) -> None:
                if self.path.partition("?")[0] != "/metrics":
                    self.send_error(404, "only /metrics exists")
                    return
                body = outer.text.encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                """Logs nothing."""

        class Server(HTTPServer):
            def handle_error(self, *_: Any) -> None:
                """Ignores clients that disconnect."""

        try:
            self._server = Server((host, port), Handler)
        except OSError as error:
            raise WireError(f"metrics at {host}:{port}: {error.strerror or error}") from error
        self._thread = threading.Thread(target=self._server.serve_forever, name="metrics", daemon=True)
        self._thread.start()

    @property
    def address(self) -> str:
        """The address that it listens on."""
        host, port = self._server.server_address[:2]
        return f"{host!s}:{port}"

    def close(self) -> None:
        """Stops the server."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(2 * CLIENT_TIMEOUT_S)

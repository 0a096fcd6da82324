"""Serves the page of the playground on the loopback interface.

The server has one file, which it reads when it starts. It answers only GET and HEAD for that file, from browsers that
address it by a loopback name. A page of another site can therefore not read from it, even by a name that it lets point
to this machine.
"""

from __future__ import annotations

import html
import re
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

HOST = "127.0.0.1"
PAGE = Path(__file__).parent / "page" / "index.html"
PATHS = ("/", "/index.html")
# The page states its own policy, with the hashes of its script and styles.
POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy" content="([^"]+)"')
FALLBACK_POLICY = "default-src 'none'"


class PageMissingError(FileNotFoundError):
    """The page is not part of this installation."""

    def __init__(self) -> None:
        super().__init__(
            "this installation has no playground, because it was built without Node or the WebAssembly target of Rust; "
            "run `make web` in the sources, or install a published wheel"
        )


class Server(ThreadingHTTPServer):
    """A server for one page.

    Attributes:
        page: the content.
        policy: the Content-Security-Policy of the page.
        hosts: the allowed values of the header `Host`.
    """

    daemon_threads = True

    def __init__(self, page: bytes, port: int = 0) -> None:
        """Binds the port; 0 takes a free one.

        Raises:
            OSError: the port is taken, or needs other rights.
        """
        super().__init__((HOST, port), Handler)
        self.page = page
        found = POLICY.search(page.decode(errors="replace"))
        policy = html.unescape(found[1]) if found else FALLBACK_POLICY
        self.policy = f"{policy}; frame-ancestors 'none'"
        self.hosts = frozenset(f"{name}:{self.server_port}" for name in (HOST, "localhost"))

    @property
    def address(self) -> str:
        """The address of the page, without a scenario."""
        return f"http://{HOST}:{self.server_port}/"


def read_page(path: Path = PAGE) -> bytes:
    """Reads the page.

    Raises:
        PageMissingError: it is not part of this installation.
    """
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise PageMissingError from None


class Handler(BaseHTTPRequestHandler):
    """Answers one request."""

    protocol_version = "HTTP/1.1"
    # A browser that opens a connection and sends nothing must not occupy a thread without end.
    timeout = 30
    server: Server

    def do_GET(self) -> None:
        """Sends the page."""
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        """Sends the headers of the page."""
        self._answer(with_body=False)

    def __getattr__(self, name: str) -> Any:
        # The base class looks for a method of this name for each request.
        if name.startswith("do_"):
            return lambda: self._send(HTTPStatus.METHOD_NOT_ALLOWED, b"only GET and HEAD\n", "text/plain")
        raise AttributeError(name)

    def _answer(self, *, with_body: bool) -> None:
        path = self.path.partition("?")[0]
        if self.headers.get("Host") not in self.server.hosts:
            self._send(HTTPStatus.MISDIRECTED_REQUEST, b"wrong host\n", "text/plain", with_body=with_body)
        elif path in PATHS:
            self._send(HTTPStatus.OK, self.server.page, "text/html; charset=utf-8", with_body=with_body)
        else:
            self._send(HTTPStatus.NOT_FOUND, b"not found\n", "text/plain", with_body=with_body)

    def _send(self, status: HTTPStatus, body: bytes, kind: str, *, with_body: bool = True) -> None:
        self.send_response_only(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Security-Policy", self.server.policy)
        self.send_header("Cross-Origin-Opener-Policy", "same-origin")
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Cache-Control", "no-store")
        if status == HTTPStatus.METHOD_NOT_ALLOWED:
            self.send_header("Allow", "GET, HEAD")
        if status != HTTPStatus.OK:
            # The body of a refused request is not read, so the connection cannot continue.
            self.send_header("Connection", "close")
            self.close_connection = True
        self.end_headers()
        if with_body:
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Logs nothing: requests of the user's own browser are no news."""

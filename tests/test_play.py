"""Tests of `sparelane play`: what the server answers, and what the address contains."""

from __future__ import annotations

import base64
import http.client
import json
import re
import signal
import socket
import subprocess
import sys
import threading
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from hangs import HANG_S
from sparelane.cli.main import main
from sparelane.play import server
from sparelane.play.address import MAX_FRAGMENT, AddressError, fragment
from sparelane.scenario import library

PAGE = b"""<!doctype html><html lang="en"><head>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'sha256-abc='">
<title>page</title></head></html>"""


@pytest.fixture
def served() -> Iterator[server.Server]:
    with server.Server(PAGE) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield running
        running.shutdown()
        thread.join(HANG_S)


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A page in place of the built one."""
    path = tmp_path / "index.html"
    path.write_bytes(PAGE)
    monkeypatch.setattr(server, "read_page", path.read_bytes)
    return path


def ask(
    running: server.Server, method: str, path: str, headers: dict[str, str] | None = None
) -> tuple[http.client.HTTPResponse, bytes]:
    connection = http.client.HTTPConnection(server.HOST, running.server_port, timeout=HANG_S)
    connection.request(method, path, headers=headers or {})
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer, body


def content(text: str) -> dict[str, object]:
    """Reads a fragment as the page does."""
    version, _, data = text.removeprefix("#").partition(".")
    assert version == "1"
    packed = base64.urlsafe_b64decode(data + "=" * (-len(data) % 4))
    found = json.loads(zlib.decompress(packed, -zlib.MAX_WBITS))
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("path", ["/", "/index.html", "/?question"])
def test_the_page_is_served_with_its_own_policy(served: server.Server, path: str) -> None:
    answer, body = ask(served, "GET", path)
    assert (answer.status, body) == (200, PAGE)
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    policy = answer.headers["Content-Security-Policy"]
    assert policy == "default-src 'none'; script-src 'sha256-abc='; frame-ancestors 'none'"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert "Server" not in answer.headers
    head, nothing = ask(served, "HEAD", path)
    assert (head.status, nothing, head.headers["Content-Length"]) == (200, b"", str(len(PAGE)))


@pytest.mark.parametrize(
    "path",
    [
        "/other",
        "/server.py",
        "/../server.py",
        "/..%2f..%2fpyproject.toml",
        "/%2e%2e/server.py",
        "//etc/passwd",
        "/index.html/",
        "index.html",
    ],
)
def test_no_other_path_is_served(served: server.Server, path: str) -> None:
    answer, body = ask(served, "GET", path)
    assert (answer.status, body) == (404, b"not found\n")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT", "FROB"])
def test_other_methods_are_refused(served: server.Server, method: str) -> None:
    answer, _ = ask(served, method, "/")
    assert (answer.status, answer.headers["Allow"]) == (405, "GET, HEAD")


@pytest.mark.parametrize("host", ["example.org", "127.0.0.1", "127.0.0.1:1", "localhost.example.org:{port}", ""])
def test_other_names_of_the_host_are_refused(served: server.Server, host: str) -> None:
    answer, body = ask(served, "GET", "/", {"Host": host.format(port=served.server_port)})
    assert (answer.status, body) == (421, b"wrong host\n")
    answer, _ = ask(served, "GET", "/", {"Host": f"localhost:{served.server_port}"})
    assert answer.status == 200


def test_only_the_loopback_interface_is_bound(served: server.Server) -> None:
    assert served.socket.getsockname()[0] == "127.0.0.1"


def test_nonsense_ends_the_connection_and_not_the_server(served: server.Server) -> None:
    with socket.create_connection((server.HOST, served.server_port), timeout=HANG_S) as raw:
        raw.sendall(b"\x16\x03\x01 nonsense\r\n\r\n")
        while raw.recv(4096):
            pass
    assert ask(served, "GET", "/")[0].status == 200


def test_a_page_without_a_policy_gets_one_that_allows_nothing() -> None:
    with server.Server(b"<p>") as running:
        assert running.policy.startswith("default-src 'none'")


def test_the_address_contains_the_scenario() -> None:
    toml = 'title = "a\u00e4\U0001f600</script>"\n'
    text = fragment("x" * 100, toml)
    assert re.fullmatch(r"#1\.[A-Za-z0-9_-]+", text)
    assert content(text) == {"variants": [{"label": "x" * 40, "toml": toml}]}


def test_a_scenario_that_is_too_long_for_an_address_is_refused() -> None:
    noise = "".join(f"# {zlib.crc32(str(number).encode()):x}\n" for number in range(MAX_FRAGMENT // 4))
    with pytest.raises(AddressError, match="does not fit into an address"):
        fragment("long", noise)


def run(*arguments: str, **extra: object) -> Result:
    return CliRunner().invoke(main, ["play", *arguments], **extra)  # type: ignore[arg-type]


@pytest.mark.usefixtures("page")
def test_a_missing_file_and_a_wrong_port_are_mistakes(tmp_path: Path) -> None:
    done = run(str(tmp_path / "no.toml"), "--no-open")
    assert done.exit_code == 2
    assert "no.toml" in done.stderr
    done = run("--port", "70000")
    assert done.exit_code == 2
    done = run("dumbell-cubic")
    assert done.exit_code == 2
    assert "dumbbell-cubic" in done.stderr


@pytest.mark.usefixtures("page")
def test_a_port_that_is_taken_is_a_mistake() -> None:
    with socket.create_server((server.HOST, 0)) as taken:
        port = taken.getsockname()[1]
        done = run("--no-open", "--port", str(port))
    assert done.exit_code == 2
    assert f"cannot use port {port}" in done.stderr


def test_an_installation_without_the_page_says_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(server.PageMissingError, match="make web"):
        server.read_page(tmp_path / "index.html")


SERVE = """
import sys
from pathlib import Path
from sparelane.play import server
page = Path(sys.argv.pop(1)).read_bytes()
server.read_page = lambda: page
from sparelane.cli.main import main
main()
"""


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_the_command_serves_a_ready_made_scenario_until_it_is_stopped(stop: signal.Signals, page: Path) -> None:
    words = [sys.executable, "-c", SERVE, str(page), "play", "rc3-example-66", "--no-open"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.fullmatch(r"The playground is at http://127\.0\.0\.1:(\d+)/(#\S+)\n", line)
        assert found, line
        connection = http.client.HTTPConnection(server.HOST, int(found[1]), timeout=HANG_S)
        connection.request("GET", "/")
        assert connection.getresponse().read() == PAGE
        connection.close()
        process.send_signal(stop)
        _, errors = process.communicate(timeout=HANG_S)
    assert (process.returncode, errors) == (0, "Press Ctrl-C to end.\n")
    expected = library.resolve("rc3-example-66").read_text(encoding="utf-8")
    assert content(found[2]) == {"variants": [{"label": "rc3-example-66", "toml": expected}]}


@pytest.mark.usefixtures("page")
def test_the_browser_is_opened_with_the_scenario(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", lambda address: opened.append(address))

    def interrupt(_: server.Server) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(server.Server, "serve_forever", interrupt)
    done = run("-", input='duration = "1s"\n')
    assert done.exit_code == 0, done.output
    assert "no browser was found" in done.stderr
    (address,) = opened
    assert content(address.partition("/#")[2]) == {"variants": [{"label": "stdin", "toml": 'duration = "1s"\n'}]}

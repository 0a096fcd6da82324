"""Tests of failing standard output and standard error: results are saved and peers are served."""

import io
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from command_line import SPARELANE
from hangs import HANG_S
from sparelane.simulation.result import Result
from sparelane.terminal import console, streams
from sparelane.terminal.streams import INCOMPLETE_OUTPUT, Guarded, Streams
from wire_processes import Keys, call

SMALL = """\
duration = "100ms"
topology = { kind = "dumbbell", pairs = 2 }
scheme.tcp.controller = "newreno"
scheme.other.controller = "cubic"
workload = { kind = "bulk", size = "10kB" }
"""


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A folder with a scenario and a saved run of it."""
    (tmp_path / "small.toml").write_text(SMALL, encoding="utf-8")
    (tmp_path / "other.toml").write_text(SMALL.replace("10kB", "20kB"), encoding="utf-8")
    return tmp_path


def shell(line: str, here: Path) -> subprocess.CompletedProcess[str]:
    """Runs a line of Bash in which S is the command."""
    program = f'"{sys.executable}" -c "from sparelane.cli.main import main; main()"'
    script = f'set -o pipefail; S() {{ {program} "$@"; }}; {line}'
    return subprocess.run(["bash", "-c", script], cwd=here, capture_output=True, text=True, timeout=HANG_S, check=False)


FULL = "cannot write to standard output: no space left on device"
CLOSED = "the reader of standard output has exited"
RUN = "S run small.toml -o out --set workload.scheme=tcp"


@pytest.mark.parametrize(
    ("line", "code", "message"),
    [
        (f"{RUN} | true", 0, f"sparelane: {CLOSED}; the results are saved in out"),
        (f"{RUN} | head -1", 0, f"sparelane: {CLOSED}; the results are saved in out"),
        (f"{RUN} | grep -q scheme", 0, f"sparelane: {CLOSED}; the results are saved in out"),
        (f"{RUN} > /dev/full", INCOMPLETE_OUTPUT, f"sparelane: {FULL}; the results are saved in out"),
        (
            f"PYTHONUNBUFFERED=1 {RUN} > /dev/full",
            INCOMPLETE_OUTPUT,
            f"sparelane: {FULL}; the results are saved in out",
        ),
        (f"{RUN} > /dev/full 2> /dev/full", INCOMPLETE_OUTPUT, ""),
        (f"{RUN} >&-", 0, ""),
        (f"{RUN} 2>&-", 0, ""),
        (f"{RUN} <&- >&- 2>&-", 0, ""),
    ],
)
def test_a_run_is_saved_even_if_its_output_fails(line: str, code: int, message: str, here: Path) -> None:
    done = shell(line, here)
    messages = "\n".join(text for text in done.stderr.splitlines() if text.startswith("sparelane: "))
    # If the reader reads everything before it closes the pipe, there is no message.
    assert (done.returncode, messages) in [(code, message), (code, "") if code == 0 else (code, message)], done.stderr
    assert len(Result.load(here / "out").flows) == 2
    assert sorted(path.suffix for path in (here / "out").iterdir()) == sorted([".csv", ".parquet"] * 7 + [".json"])


@pytest.mark.parametrize(
    ("line", "files", "message"),
    [
        (
            "S run small.toml --seeds 2 --set workload.scheme=tcp -o out",
            ["out/rows.parquet"],
            "results are saved in out",
        ),
        ("S sweep small.toml -o out", ["out/rows.parquet", "out/manifest.json"], "results are saved in out"),
        (
            "S compare small.toml other.toml --seeds 2 -o out --json all.json",
            ["all.json"],
            "numbers are saved in all.json",
        ),
        ("S new fresh.toml", ["fresh.toml"], "the scenario is saved in fresh.toml"),
        ("S keys new --keys keys", ["keys"], "the key is saved in keys"),
        ("S bench --duration 0s --json bench.json", ["bench.json"], "the timings are saved in bench.json"),
        ("S plot run -o figure.png", ["figure.png"], "the figure is saved in figure.png"),
        ("S report run -o page.html", ["page.html"], "the report is saved in page.html"),
        ("S list", [], ""),
    ],
)
def test_every_command_saves_its_results_before_it_prints(
    line: str, files: list[str], message: str, here: Path
) -> None:
    before = shell("S run small.toml -o run --set workload.scheme=tcp", here) if " run " in line else None
    assert before is None or before.returncode == 0, before.stderr
    done = shell(f"{line} > /dev/full", here)
    assert done.returncode == INCOMPLETE_OUTPUT, done.stderr
    [last] = [line for line in done.stderr.splitlines() if FULL in line]
    assert message in last
    assert [name for name in files if not (here / name).exists()] == []


def test_a_failed_command_keeps_its_exit_code(here: Path) -> None:
    done = shell("S run nonsense > /dev/full", here)
    assert done.returncode == 2
    assert "nonsense" in done.stderr


def test_a_command_that_only_prints_ends_when_its_reader_closes_the_pipe(here: Path) -> None:
    done = shell("S list | true; S --help | true", here)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.fixture
def guarded() -> Iterator[tuple[Guarded, int]]:
    """A guarded stream that writes into a pipe, and the reading end."""
    reader, writer = os.pipe()
    yield Guarded(writer), reader
    for number in (reader, writer):
        os.close(number)


def read_all(reader: int, until: bytes) -> bytes:
    """Reads from a pipe until these bytes."""
    found = b""
    while until not in found:
        piece = os.read(reader, 1 << 16)
        assert piece, found[-200:]
        found += piece
    return found


def background(file: Guarded, *, as_json: bool = False) -> tuple[Streams, Callable[[], None]]:
    """Returns streams that print to this file in the background, and a function that ends them."""
    started = Streams()
    started.output = file
    context = started.in_background(as_json=as_json)
    context.__enter__()

    def end() -> None:
        context.__exit__(None, None, None)

    return started, end


def test_lines_beyond_the_bound_are_dropped_and_replaced_by_their_number(guarded: tuple[Guarded, int]) -> None:
    file, reader = guarded
    _, end = background(file, as_json=True)
    line = b'{"event": "item", "name": "%s", "number": %d}\n'
    lines = [line % (b"x" * 100, number) for number in range(20_000)]
    # The pipe is not read yet. If writes waited for a reader, this loop would never end.
    for one in lines:
        file.write(one)
    assert file.dropped_lines > 5_000
    found = read_all(reader, lines[-1]).splitlines(keepends=True)
    end()
    # Every gap is where its lines are missing. The number of gaps depends on the threads.
    at, missing, since_gap = 0, 0, b""
    for one in found:
        message = json.loads(one)
        if message["event"] == "dropped":
            at, missing, since_gap = at + message["lines"], missing + message["lines"], b""
        else:
            assert one == lines[at]
            at, since_gap = at + 1, since_gap + one
    assert (at, missing) == (len(lines), file.dropped_lines)
    assert len(since_gap) <= streams.MOST_WAITING_BYTES


def test_a_slow_reader_gets_every_line(guarded: tuple[Guarded, int]) -> None:
    file, reader = guarded
    _, end = background(file)
    lines = [b"line %05d of some length, so that they fill the pipe\n" % number for number in range(5_000)]
    found: list[bytes] = []
    thread = threading.Thread(target=lambda: found.append(read_all(reader, lines[-1])))
    for one in lines:
        file.write(one)
    thread.start()
    end()
    thread.join()
    assert found == [b"".join(lines)]
    assert (file.dropped_lines, file.error) == (0, None)


def test_a_reader_that_never_reads_delays_the_end_for_a_bounded_time(
    guarded: tuple[Guarded, int], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file, _ = guarded
    monkeypatch.setattr(streams, "DRAIN_S", 0.1)
    started, end = background(file)
    for number in range(3_000):
        file.write(b"line %05d of some length, so that they fill the pipe\n" % number)
    end()
    assert file.dropped_lines > 0
    file.write(b"what comes later does not wait, either\n" * 10_000)
    assert started.finish(0) == INCOMPLETE_OUTPUT
    assert f"{file.dropped_lines} lines of standard output were dropped" in capsys.readouterr().err


def test_progress_on_a_full_pipe_does_not_delay_the_work(
    guarded: tuple[Guarded, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    file, _ = guarded
    monkeypatch.setattr(streams, "DRAIN_S", 0.1)
    monkeypatch.setattr(console, "LINE_EVERY_S", 0.0)
    monkeypatch.setattr(streams.STREAMS, "errors", file)
    monkeypatch.setattr(sys, "stderr", io.TextIOWrapper(io.BufferedWriter(file), line_buffering=True))
    with console.progress("simulating " + "x" * 1000) as meter:
        for step in range(200):
            meter(step / 200)
    assert isinstance(file.error, TimeoutError)


def test_a_non_blocking_pipe_gets_all_lines(guarded: tuple[Guarded, int]) -> None:
    file, reader = guarded
    os.set_blocking(file.fileno(), False)
    content = b"x" * 300_000 + b"\n"
    found: list[bytes] = []
    thread = threading.Thread(target=lambda: found.append(read_all(reader, b"\n")))
    thread.start()
    file.write(content)
    thread.join()
    assert (found, file.error) == ([content], None)


@pytest.mark.slow
def test_a_peer_is_served_while_the_output_of_recv_is_not_read(tmp_path: Path) -> None:
    """The reader of standard output and of the log does not read more events than a pipe holds."""
    keys = Keys(tmp_path)
    (tmp_path / "inbox").mkdir()
    folder = tmp_path / "many"
    folder.mkdir()
    count, name = 400, "x" * 200
    for number in range(count):
        (folder / f"{name}{number:04}").write_bytes(b"content")
    line = [*SPARELANE, "recv", *keys.of("receiver"), "--listen", "127.0.0.1:0", "-o", str(tmp_path / "inbox")]
    with subprocess.Popen(
        [*line, "--once", "--json", "--log-level", "debug"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as receiver:
        alarm = threading.Timer(HANG_S, receiver.kill)
        alarm.start()
        try:
            assert receiver.stdout is not None
            # Only the first line is read.
            first = b""
            while not first.endswith(b"\n"):
                first += os.read(receiver.stdout.fileno(), 1)
            address = first.split(b'"address": "')[1].split(b'"')[0].decode()
            message = call("send", *keys.of("sender"), str(folder), address)
            # The events of these files exceed the capacity of the pipe.
            assert count * len(name) > 1 << 16
            assert message.startswith(f"{count} new, 0 unchanged, "), "the folder is no file"
            code = receiver.wait(timeout=HANG_S)
            found = receiver.stdout.read().count(b'"item"')
        finally:
            alarm.cancel()
            receiver.kill()
    assert len(list((tmp_path / "inbox" / "many").iterdir())) == count
    # Lines beyond the capacity of the pipe waited for 5 s and were dropped.
    assert (code, found < count) == (INCOMPLETE_OUTPUT, True)

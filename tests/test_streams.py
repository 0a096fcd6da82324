"""Standard output and standard error: whatever becomes of them, results are saved and peers are served."""

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
from sparelane.terminal import console as terminal
from sparelane.terminal import streams
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
    """A folder with a scenario, and a run of it for commands that read one."""
    (tmp_path / "small.toml").write_text(SMALL, encoding="utf-8")
    (tmp_path / "other.toml").write_text(SMALL.replace("10kB", "20kB"), encoding="utf-8")
    return tmp_path


def shell(line: str, here: Path) -> subprocess.CompletedProcess[str]:
    """A line of Bash in which $S is the command."""
    program = f'"{sys.executable}" -c "from sparelane.cli.main import main; main()"'
    script = f'set -o pipefail; S() {{ {program} "$@"; }}; {line}'
    return subprocess.run(["bash", "-c", script], cwd=here, capture_output=True, text=True, timeout=HANG_S, check=False)


FULL = "cannot write to standard output: no space left on device"
LEFT = "nobody reads standard output any more"
RUN = "S run small.toml -o out --set workload.scheme=tcp"


@pytest.mark.parametrize(
    ("line", "code", "told"),
    [
        (f"{RUN} | true", 0, f"sparelane: {LEFT}; the results are saved in out"),
        (f"{RUN} | head -1", 0, f"sparelane: {LEFT}; the results are saved in out"),
        (f"{RUN} | grep -q scheme", 0, f"sparelane: {LEFT}; the results are saved in out"),
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
def test_a_run_is_saved_whatever_becomes_of_its_output(line: str, code: int, told: str, here: Path) -> None:
    done = shell(line, here)
    said = "\n".join(text for text in done.stderr.splitlines() if text.startswith("sparelane: "))
    # A reader that takes all before it leaves is no failure at all.
    assert (done.returncode, said) in [(code, told), (code, "") if code == 0 else (code, told)], done.stderr
    assert len(Result.load(here / "out").flows) == 2
    assert sorted(path.suffix for path in (here / "out").iterdir()) == sorted([".csv", ".parquet"] * 7 + [".json"])


@pytest.mark.parametrize(
    ("line", "files", "told"),
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
        ("S keys new --dir keys", ["keys"], "the key is saved in keys"),
        ("S bench --duration 0s --json bench.json", ["bench.json"], "the timings are saved in bench.json"),
        ("S plot run -o figure.png", ["figure.png"], "the figure is saved in figure.png"),
        ("S report run -o page.html", ["page.html"], "the report is saved in page.html"),
        ("S list", [], ""),
    ],
)
def test_every_command_saves_its_results_before_it_prints(line: str, files: list[str], told: str, here: Path) -> None:
    before = shell("S run small.toml -o run --set workload.scheme=tcp", here) if " run " in line else None
    assert before is None or before.returncode == 0, before.stderr
    done = shell(f"{line} > /dev/full", here)
    assert done.returncode == INCOMPLETE_OUTPUT, done.stderr
    [last] = [said for said in done.stderr.splitlines() if FULL in said]
    assert told in last
    assert [name for name in files if not (here / name).exists()] == []


def test_a_failure_of_the_command_keeps_its_own_exit_code(here: Path) -> None:
    done = shell("S run nonsense > /dev/full", here)
    assert done.returncode == 2
    assert "nonsense" in done.stderr


def test_a_command_that_only_prints_ends_when_nobody_reads(here: Path) -> None:
    done = shell("S list | true; S --help | true", here)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.fixture
def guarded() -> Iterator[tuple[Guarded, int]]:
    """A guarded stream into a pipe, and the end to read from."""
    reader, writer = os.pipe()
    yield Guarded(writer), reader
    for number in (reader, writer):
        os.close(number)


def read_all(reader: int, until: bytes) -> bytes:
    """The content of a pipe, up to these bytes."""
    found = b""
    while until not in found:
        piece = os.read(reader, 1 << 16)
        assert piece, found[-200:]
        found += piece
    return found


def background(file: Guarded, *, as_json: bool = False) -> tuple[Streams, Callable[[], None]]:
    """Streams whose standard output this is, printing in the background; and what ends that."""
    made = Streams()
    made.output = file
    context = made.in_background(as_json=as_json)
    context.__enter__()

    def end() -> None:
        context.__exit__(None, None, None)

    return made, end


def test_lines_beyond_the_bound_are_dropped_and_counted_in_their_place(guarded: tuple[Guarded, int]) -> None:
    file, reader = guarded
    _, end = background(file, as_json=True)
    line = b'{"event": "item", "name": "%s", "number": %d}\n'
    lines = [line % (b"x" * 100, number) for number in range(20_000)]
    # Nobody reads the pipe yet: if a write waited for a reader, this loop would never end.
    for one in lines:
        file.write(one)
    assert file.dropped_lines > 5_000
    found = read_all(reader, lines[-1]).splitlines(keepends=True)
    end()
    # Every gap stands where its lines are missing. The threads decide how many gaps there are.
    at, missing, since_gap = 0, 0, b""
    for one in found:
        told = json.loads(one)
        if told["event"] == "dropped":
            at, missing, since_gap = at + told["lines"], missing + told["lines"], b""
        else:
            assert one == lines[at]
            at, since_gap = at + 1, since_gap + one
    assert (at, missing) == (len(lines), file.dropped_lines)
    assert len(since_gap) <= streams.MOST_WAITING_BYTES


def test_a_reader_that_is_slow_and_reads_on_gets_every_line(guarded: tuple[Guarded, int]) -> None:
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


def test_a_reader_that_never_reads_holds_up_the_end_for_a_bounded_time(
    guarded: tuple[Guarded, int], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file, _ = guarded
    monkeypatch.setattr(streams, "DRAIN_S", 0.1)
    made, end = background(file)
    for number in range(3_000):
        file.write(b"line %05d of some length, so that they fill the pipe\n" % number)
    end()
    assert file.dropped_lines > 0
    file.write(b"what comes later does not wait, either\n" * 10_000)
    assert made.finish(0) == INCOMPLETE_OUTPUT
    assert f"{file.dropped_lines} lines of standard output were dropped" in capsys.readouterr().err


def test_progress_on_a_pipe_that_nobody_reads_does_not_hold_up_the_work(
    guarded: tuple[Guarded, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    file, _ = guarded
    monkeypatch.setattr(streams, "DRAIN_S", 0.1)
    monkeypatch.setattr(terminal, "LINE_EVERY_S", 0.0)
    monkeypatch.setattr(streams.STREAMS, "errors", file)
    monkeypatch.setattr(sys, "stderr", io.TextIOWrapper(io.BufferedWriter(file), line_buffering=True))
    with terminal.progress("simulating " + "x" * 1000) as meter:
        for step in range(200):
            meter(step / 200)
    assert isinstance(file.error, TimeoutError)


def test_a_pipe_that_does_not_block_gets_all(guarded: tuple[Guarded, int]) -> None:
    file, reader = guarded
    os.set_blocking(file.fileno(), False)
    content = b"x" * 300_000 + b"\n"
    found: list[bytes] = []
    thread = threading.Thread(target=lambda: found.append(read_all(reader, b"\n")))
    thread.start()
    file.write(content)
    thread.join()
    assert (found, file.error) == ([content], None)


def test_a_peer_is_served_while_nobody_reads_what_recv_prints(tmp_path: Path) -> None:
    """More events than a pipe holds, and a reader of standard output and of the log who reads neither."""
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
            # The first line is all that anybody reads.
            first = b""
            while not first.endswith(b"\n"):
                first += os.read(receiver.stdout.fileno(), 1)
            address = first.split(b'"address": "')[1].split(b'"')[0].decode()
            told = call("send", *keys.of("sender"), str(folder), address)
            # The events of these files are more than the pipe has room for.
            assert count * len(name) > 1 << 16
            assert f"{count + 1} of {count + 1} sent" in told, "the files and their folder"
            code = receiver.wait(timeout=HANG_S)
            found = receiver.stdout.read().count(b'"item"')
        finally:
            alarm.cancel()
            receiver.kill()
    assert len(list((tmp_path / "inbox" / "many").iterdir())) == count
    # What did not fit into the pipe waited for 5 s, and was dropped.
    assert (code, found < count) == (INCOMPLETE_OUTPUT, True)

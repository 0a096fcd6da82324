"""Guards standard output and standard error, so that their readers cannot disturb a command.

A summary is printed after hours of work. By then the reader of the pipe may have exited, the disk may be full, or the
terminal may be stopped. None of these may lose results or stall a transfer. Both streams are therefore guarded while a
command runs: a failed write is noted, and the command continues. At the end, `finish` reports what happened to
standard output, names the saved results, and determines the exit code:

- A reader that closed the pipe, as `head` does, is not an error. The exit code is that of the command.
- Any other failure, such as a full disk, gives `INCOMPLETE_OUTPUT`, unless the command itself failed.
- Failures of standard error are ignored, since they cannot be reported.

Commands that serve peers print from `in_background`. There a thread writes, and lines that it cannot write in time are
dropped and counted.
"""

from __future__ import annotations

import errno
import io
import json
import os
import select
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

# The exit code of a command that succeeded but could not print all of its output.
INCOMPLETE_OUTPUT = 4

# Largest memory of lines that wait for a slow reader, bytes.
MOST_WAITING_BYTES = 1 << 20

# Time for a slow reader to take the remaining lines when a command ends, seconds.
DRAIN_S = 5.0


class Guarded(io.RawIOBase):
    """The raw file of a standard stream. Writes never fail: the first error is stored, and later writes do nothing.

    Attributes:
        error: the first error; `None` without an error.
        dropped_lines: lines that were dropped because the reader was too slow.
    """

    def __init__(self, number: int) -> None:
        super().__init__()
        self._number = number
        self._writer: Writer | None = None
        self.error: OSError | None = None
        self.dropped_lines = 0

    def fileno(self) -> int:
        """The file descriptor."""
        return self._number

    def isatty(self) -> bool:
        """True if the file is a terminal."""
        return os.isatty(self._number)

    def writable(self) -> bool:
        """Always true."""
        return True

    def write(self, data: ReadableBuffer, /) -> int:
        """Accepts all data, even if it cannot be written."""
        content = bytes(data)
        if self._writer is not None:
            self._writer.put(self, content)
        else:
            self.write_now(content)
        return len(content)

    def write_now(self, content: bytes) -> None:
        """Writes to the file. May block."""
        rest = memoryview(content)
        while rest and self.error is None:
            try:
                rest = rest[os.write(self._number, rest) :]
            except BlockingIOError:
                # The process that created the pipe made it non-blocking.
                select.select([], [self._number], [])
            except OSError as error:
                self.error = error

    @property
    def is_in_background(self) -> bool:
        """True while a thread does the writing."""
        return self._writer is not None

    def hand_over(self, writer: Writer | None) -> None:
        """Passes writing to a thread, or back to the caller with `None`."""
        self._writer = writer


class Writer:
    """A thread that writes to a file from a bounded queue, in order.

    If the queue is full, the oldest lines are dropped, since the last lines report the outcome. A line in their place
    gives the number of dropped lines.
    """

    def __init__(self, gap: Callable[[int], bytes]) -> None:
        self._gap = gap
        self._waiting: deque[tuple[Guarded, bytes]] = deque()
        self._waiting_bytes = 0
        self._missing = 0
        self._is_closed = False
        # The piece that the thread is writing now.
        self._current: tuple[Guarded, bytes] | None = None
        self._changed = threading.Condition()
        # A daemon thread, so that a blocked write does not keep the process alive.
        threading.Thread(target=self._run, name="output", daemon=True).start()

    def put(self, file: Guarded, content: bytes) -> None:
        """Queues the content of one write."""
        with self._changed:
            if self._is_closed or file.error is not None:
                return
            self._waiting.append((file, content))
            self._waiting_bytes += len(content)
            # A long line may be in several pieces, so pieces are dropped up to the end of a line.
            is_cut = False
            while self._waiting and (self._waiting_bytes > MOST_WAITING_BYTES or is_cut):
                is_cut = not self._drop().endswith(b"\n")
            self._changed.notify_all()

    def settle(self, within_s: float) -> bool:
        """Waits up to `within_s` until the queue is empty. Returns `True` if it is."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._waiting and self._current is None, within_s)

    def close(self) -> None:
        """Ends the thread after the queue is written. Lines that still wait after `DRAIN_S` are dropped and counted."""
        self.settle(DRAIN_S)
        with self._changed:
            self._is_closed = True
            if self._current is not None:
                self._waiting.appendleft(self._current)
            for file, _ in self._waiting:
                file.error = file.error or TimeoutError(errno.ETIMEDOUT, "nobody reads it")
            while self._waiting:
                self._drop()
            self._changed.notify_all()

    def _drop(self) -> bytes:
        """Drops the oldest piece and returns it."""
        file, content = self._waiting.popleft()
        self._waiting_bytes -= len(content)
        lines = content.count(b"\n")
        file.dropped_lines += lines
        self._missing += lines
        return content

    def _run(self) -> None:
        while True:
            with self._changed:
                self._current = None
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._waiting or self._is_closed)
                if not self._waiting:
                    return
                self._current = file, content = self._waiting.popleft()
                self._waiting_bytes -= len(content)
                missing, self._missing = self._missing, 0
            if missing:
                file.write_now(self._gap(missing))
            file.write_now(content)


class Streams:
    """The guarded streams of this process, and the places of results that its command has saved."""

    def __init__(self) -> None:
        self.output: Guarded | None = None
        self.errors: Guarded | None = None
        self._saved: list[str] = []
        self._writers: list[Writer] = []

    def guard(self) -> None:
        """Guards both streams. Called at the start of a command."""
        _open_standard_files()
        self._saved.clear()
        self.output, sys.stdout = _guarded(sys.stdout, 1)
        self.errors, sys.stderr = _guarded(sys.stderr, 2)

    def saved(self, clause: str) -> None:
        """Notes that results are saved, for the message of `finish`.

        Args:
            clause: what is saved and where, such as "the results are saved in out/a".
        """
        self._saved.append(clause)

    @property
    def is_unread(self) -> bool:
        """True after standard output has failed. A command that only prints can stop then."""
        return self.output is not None and self.output.error is not None

    def finish(self, code: int | str | None) -> int | str | None:
        """Flushes both streams, and reports a failure of standard output.

        Args:
            code: the exit code of the command.

        Returns:
            The exit code of the process.
        """
        sys.stdout.flush()
        if self.output is None or (self.output.error is None and not self.output.dropped_lines):
            return code
        places = "; ".join(dict.fromkeys(self._saved))
        error, dropped = self.output.error, self.output.dropped_lines
        if isinstance(error, BrokenPipeError):
            if places:
                _print_error(f"sparelane: the reader of standard output has exited; {places}")
            return code
        lost = f"{dropped} lines of standard output were dropped: its reader is too slow" if dropped else ""
        cause = ""
        if error is not None and not isinstance(error, TimeoutError):
            cause = f"cannot write to standard output: {(error.strerror or str(error)).lower()}"
        _print_error(f"sparelane: {'; '.join(part for part in (lost, cause, places) if part)}")
        return code or INCOMPLETE_OUTPUT

    @contextmanager
    def in_background(self, *, as_json: bool = False, only_errors: bool = False) -> Iterator[None]:
        """Prints from a thread, so that a stalled reader does not block the caller.

        At most `MOST_WAITING_BYTES` of a stream wait for its reader. Beyond that, the oldest lines are dropped, and a
        line in their place gives their number.

        Args:
            as_json: Write that line as JSON, for standard output that consists of JSON lines.
            only_errors: Leave standard output alone, as while progress is shown on standard error.
        """
        wanted = (self.errors,) if only_errors else (self.output, self.errors)
        given = [file for file in wanted if file is not None and not file.is_in_background]
        writers: dict[tuple[int, int], Writer] = {}
        for file in given:
            status = os.fstat(file.fileno())
            place = status.st_dev, status.st_ino
            if place not in writers:
                writers[place] = Writer(_gap_in_json if as_json and file is self.output else _gap)
            # Streams that write to the same file share a thread, which keeps their order.
            file.hand_over(writers[place])
        before, self._writers = self._writers, [*self._writers, *writers.values()]
        try:
            yield
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            for writer in writers.values():
                writer.close()
            for file in given:
                file.hand_over(None)
            self._writers = before

    def settle(self, within_s: float = 1.0) -> None:
        """Waits until all printed lines are written, so that output of another program follows them."""
        sys.stdout.flush()
        for writer in self._writers:
            writer.settle(within_s)


#: The streams of this process.
STREAMS = Streams()


def _gap(lines: int) -> bytes:
    return f"sparelane: {lines} lines were dropped here: the reader is too slow\n".encode()


def _gap_in_json(lines: int) -> bytes:
    return json.dumps({"event": "dropped", "lines": lines}).encode() + b"\n"


def _print_error(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _open_standard_files() -> None:
    """Opens /dev/null for closed standard files, so that no file of results gets descriptor 0, 1 or 2."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            opened = os.open(os.devnull, os.O_RDWR)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
    if sys.stdin is None:
        sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)


def _guarded(stream: TextIO | None, number: int) -> tuple[Guarded | None, TextIO]:
    """Returns a guarded stream that replaces a standard one.

    Characters that its encoding lacks become question marks. A stream that is not a file, as in tests, is kept.
    """
    encoding, by_line, at_once = "utf-8", number == 2, False
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="replace")
        encoding, by_line, at_once = stream.encoding, stream.line_buffering, stream.write_through
    if stream is not None:
        try:
            number = stream.fileno()
        except (OSError, ValueError):
            return None, stream
        stream.flush()
    raw = Guarded(number)
    text = io.TextIOWrapper(
        io.BufferedWriter(raw), encoding=encoding, errors="replace", line_buffering=by_line, write_through=at_once
    )
    return raw, text

"""Standard output and standard error of a command, whose readers cannot disturb its work.

A summary is printed after hours of work, into a pipe whose reader may have left, onto a disk that may be full, or to a
stopped terminal. None of these may lose results or hold up a transfer. So both streams are guarded for the life of a
command: a write that fails is noted, and the command goes on. At its end `finish` says what happened to
standard output, where the results are, and which exit code tells so:

- A reader that has seen enough, as `head` has, is no error: the exit code is the command's own.
- Any other failure, such as a full disk, gives `INCOMPLETE_OUTPUT`, unless the command itself failed.
- Failures of standard error change nothing: they cannot be reported.

Commands that serve peers print from `in_background`: a thread writes, and lines that it cannot write in time are
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

# The exit code of a command that did its work and could not print all that it had to print.
INCOMPLETE_OUTPUT = 4

# Lines that wait for a slow reader take this much memory at most, bytes.
MOST_WAITING_BYTES = 1 << 20

# When a command ends, a slow reader may take what is left for this long, seconds.
DRAIN_S = 5.0


class Guarded(io.RawIOBase):
    """The raw end of a standard stream. No write fails: the first error is kept, and later writes do nothing.

    Attributes:
        error: the error that ended the stream, if one did.
        dropped_lines: lines that were dropped because the reader was too slow.
    """

    def __init__(self, number: int) -> None:
        super().__init__()
        self._number = number
        self._writer: Writer | None = None
        self.error: OSError | None = None
        self.dropped_lines = 0

    def fileno(self) -> int:
        """The number of the file."""
        return self._number

    def isatty(self) -> bool:
        """Returns whether it is a terminal."""
        return os.isatty(self._number)

    def writable(self) -> bool:
        """Always true."""
        return True

    def write(self, data: ReadableBuffer, /) -> int:
        """Takes all of the data, whatever becomes of it."""
        content = bytes(data)
        if self._writer is not None:
            self._writer.put(self, content)
        else:
            self.write_now(content)
        return len(content)

    def write_now(self, content: bytes) -> None:
        """Writes to the file, which may take any time."""
        rest = memoryview(content)
        while rest and self.error is None:
            try:
                rest = rest[os.write(self._number, rest) :]
            except BlockingIOError:
                # The process that made the pipe has set it so.
                select.select([], [self._number], [])
            except OSError as error:
                self.error = error

    @property
    def is_in_background(self) -> bool:
        """True while a thread writes."""
        return self._writer is not None

    def hand_over(self, writer: Writer | None) -> None:
        """Leaves writing to a thread; or, with `None`, takes it back."""
        self._writer = writer


class Writer:
    """A thread that writes for one file, in order, with a bounded queue.

    If the queue is full, the oldest lines make room, since the last ones say how things ended. Where lines are missing,
    a line says how many.
    """

    def __init__(self, gap: Callable[[int], bytes]) -> None:
        self._gap = gap
        self._waiting: deque[tuple[Guarded, bytes]] = deque()
        self._waiting_bytes = 0
        self._missing = 0
        self._is_closed = False
        # What is being written.
        self._current: tuple[Guarded, bytes] | None = None
        self._changed = threading.Condition()
        # A write that hangs must not keep the process alive.
        threading.Thread(target=self._run, name="output", daemon=True).start()

    def put(self, file: Guarded, content: bytes) -> None:
        """Queues what one write has."""
        with self._changed:
            if self._is_closed or file.error is not None:
                return
            self._waiting.append((file, content))
            self._waiting_bytes += len(content)
            # A longer line is in several pieces: what is dropped ends where a line does.
            is_cut = False
            while self._waiting and (self._waiting_bytes > MOST_WAITING_BYTES or is_cut):
                is_cut = not self._drop().endswith(b"\n")
            self._changed.notify_all()

    def settle(self, within_s: float) -> bool:
        """Waits until all is written, for this long at most; returns whether it is."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._waiting and self._current is None, within_s)

    def close(self) -> None:
        """Ends the thread once all is written. Lines that still wait after `DRAIN_S` are dropped and counted."""
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
        """Drops the oldest piece."""
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
    """The guarded streams of this process, and what its command has saved."""

    def __init__(self) -> None:
        self.output: Guarded | None = None
        self.errors: Guarded | None = None
        self._saved: list[str] = []
        self._writers: list[Writer] = []

    def guard(self) -> None:
        """Guards both streams, from the begin of a command on."""
        _open_standard_files()
        self._saved.clear()
        self.output, sys.stdout = _guarded(sys.stdout, 1)
        self.errors, sys.stderr = _guarded(sys.stderr, 2)

    def saved(self, clause: str) -> None:
        """Notes that results are safe, for `finish`.

        Args:
            clause: what is safe and where, such as "the results are saved in out/a".
        """
        self._saved.append(clause)

    @property
    def is_unread(self) -> bool:
        """True once standard output has failed: a command that only prints need not go on."""
        return self.output is not None and self.output.error is not None

    def finish(self, code: int | str | None) -> int | str | None:
        """Writes out both streams, and says what has happened to standard output.

        Args:
            code: the exit code that the command has of its own.

        Returns:
            The exit code that it has in the end.
        """
        sys.stdout.flush()
        if self.output is None or (self.output.error is None and not self.output.dropped_lines):
            return code
        places = "; ".join(dict.fromkeys(self._saved))
        error, dropped = self.output.error, self.output.dropped_lines
        if isinstance(error, BrokenPipeError):
            if places:
                _tell(f"sparelane: nobody reads standard output any more; {places}")
            return code
        lost = f"{dropped} lines of standard output were dropped: its reader is too slow" if dropped else ""
        cause = ""
        if error is not None and not isinstance(error, TimeoutError):
            cause = f"cannot write to standard output: {(error.strerror or str(error)).lower()}"
        _tell(f"sparelane: {'; '.join(words for words in (lost, cause, places) if words)}")
        return code or INCOMPLETE_OUTPUT

    @contextmanager
    def in_background(self, *, as_json: bool = False, only_errors: bool = False) -> Iterator[None]:
        """Prints from a thread, so that a reader who stalls does not hold up the caller.

        At most `MOST_WAITING_BYTES` of a stream wait for its reader. Beyond that the oldest lines are dropped, and a
        line in their place says how many.

        Args:
            as_json: Whether standard output has lines of JSON, which that line then is, too.
            only_errors: Whether standard output is left alone, as while progress is shown on standard error.
        """
        wanted = (self.errors,) if only_errors else (self.output, self.errors)
        given = [file for file in wanted if file is not None and not file.is_in_background]
        writers: dict[tuple[int, int], Writer] = {}
        for file in given:
            status = os.fstat(file.fileno())
            place = status.st_dev, status.st_ino
            if place not in writers:
                writers[place] = Writer(_gap_in_json if as_json and file is self.output else _gap)
            # Streams that go to the same place keep their order.
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
        """Waits until all that was printed is written, so that another program can print after it."""
        sys.stdout.flush()
        for writer in self._writers:
            writer.settle(within_s)


#: Those of this process.
STREAMS = Streams()


def _gap(lines: int) -> bytes:
    return f"sparelane: {lines} lines were dropped here: the reader is too slow\n".encode()


def _gap_in_json(lines: int) -> bytes:
    return json.dumps({"event": "dropped", "lines": lines}).encode() + b"\n"


def _tell(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


def _open_standard_files() -> None:
    """Opens those of the first three files that are closed, so that no file of results gets their numbers."""
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
    """A stream that cannot fail in the place of a standard one.

    Characters that its encoding lacks become question marks. A stream that is not a file, as in tests, stays.
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

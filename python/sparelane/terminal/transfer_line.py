"""The progress of a file transfer, in one line of the terminal's width."""

from __future__ import annotations

import os
import sys
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from sparelane.terminal import console
from sparelane.terminal.streams import STREAMS

# The time over which the rate is measured, seconds.
RATE_S = 3.0

# The interval at which the line is written on a terminal, seconds.
REFRESH_S = 0.2


@dataclass(frozen=True, slots=True)
class State:
    """The state of a transfer.

    Attributes:
        bytes: bytes that the receiver has.
        total_bytes: the size of all files; `None` if it is unknown.
        files: files that have a result.
        total_files: the number of all files.
        rate_bps: the rate of the last seconds, bits per second; `None` if it is not known yet.
        current: the name of a file that is being sent.
        waits_for: what the transfer waits for without progress, in place of rate and remaining time.
    """

    bytes: int
    total_bytes: int | None
    files: int
    total_files: int
    rate_bps: float | None
    current: str | None
    waits_for: str | None = None


def text(state: State, width: int) -> str:
    """The line for a state, at most `width` characters wide. The name of the file gives way first."""
    if state.total_bytes is None:
        parts = [size(state.bytes)]
    else:
        share = 100 * state.bytes // max(state.total_bytes, 1)
        parts = [f"{size(state.bytes)} of {size(state.total_bytes)} ({share} %)"]
    if state.waits_for is not None:
        parts.append(state.waits_for)
    elif state.rate_bps is not None:
        parts.append(
            f"{state.rate_bps / 1e6:.3g} Mb/s" if state.rate_bps < 1e8 else f"{state.rate_bps / 1e6:,.0f} Mb/s"
        )
        if state.rate_bps > 0 and state.total_bytes is not None:
            parts.append(f"{console.duration((state.total_bytes - state.bytes) * 8 / state.rate_bps)} left")
    parts.append(f"{state.files} of {state.total_files} files")
    line = ", ".join(parts)
    if state.current:
        line += f": {_end(state.current, width - len(line) - 2)}"
    return _beginning(line, width)


def size(count: int) -> str:
    """Formats bytes with a decimal unit."""
    value, unit = float(count), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if value < 1000:
            break
        value, unit = value / 1000, larger
    return f"{count} B" if unit == "B" else f"{value:.3g} {unit}" if value < 999.5 else f"{value:.0f} {unit}"


def _end(name: str, width: int) -> str:
    """The end of a name, which tells files of a folder apart, in at most `width` columns."""
    from rich.cells import cell_len

    if cell_len(name) <= width:
        return name
    while name and cell_len(name) + 1 > width:
        name = name[1:]
    return f"…{name}" if name else ""


def _beginning(line: str, width: int) -> str:
    from rich.cells import cell_len

    while cell_len(line) > width:
        line = line[:-1]
    return line


class TransferLine:
    """Shows the progress of a transfer on standard error."""

    def __init__(self) -> None:
        self._is_terminal = sys.stderr.isatty()
        self._began_s = self._written_s = time.monotonic()
        self._is_shown = False
        # Times, and the bytes sent by then.
        self._sent: deque[tuple[float, int]] = deque()

    def __call__(self, state: State, resumed_bytes: int) -> None:
        """Updates the line.

        Args:
            state: the state without a rate.
            resumed_bytes: the bytes of `state` that were not sent, and do not count for the rate.
        """
        now_s = time.monotonic()
        self._sent.append((now_s, state.bytes - resumed_bytes))
        while now_s - self._sent[0][0] > RATE_S:
            self._sent.popleft()
        if self._is_terminal:
            is_due = now_s - self._began_s >= console.SHOWN_AFTER_S and now_s - self._written_s >= REFRESH_S
        else:
            is_due = now_s - self._written_s >= console.LINE_EVERY_S
        if not is_due:
            return
        self._written_s = now_s
        (first_s, first), (_, last) = self._sent[0], self._sent[-1]
        rate_bps = max(last - first, 0) * 8 / (now_s - first_s) if now_s > first_s else None
        line = replace(state, rate_bps=rate_bps)
        if self._is_terminal:
            self._is_shown = True
            # The cursor stays in the first column, so that other lines overwrite this one.
            sys.stderr.write(f"\r\x1b[K{text(line, _columns() - 1)}\r")
            sys.stderr.flush()
        else:
            print(f"sending: {text(line, console.PIPE_WIDTH)}", file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Removes the line, so that other output can follow."""
        if self._is_shown:
            sys.stderr.write("\x1b[K")
            sys.stderr.flush()
            self._is_shown = False


def _columns() -> int:
    try:
        return max(os.get_terminal_size(sys.stderr.fileno()).columns, console.LEAST_WIDTH)
    except OSError:
        return 80


@contextmanager
def transfer_line() -> Iterator[TransferLine]:
    """Shows the progress of a transfer while the block runs."""
    shown = TransferLine()
    # A stopped terminal must not stall the transfer.
    with STREAMS.in_background(only_errors=True):
        try:
            yield shown
        finally:
            shown.clear()

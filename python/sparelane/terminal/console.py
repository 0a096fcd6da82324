"""Tables on standard output; progress and warnings on standard error."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING

from sparelane.terminal.streams import STREAMS

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress
    from rich.status import Status

# Progress bars appear after this time, seconds.
SHOWN_AFTER_S = 2.0

# Interval of progress lines if standard error is not a terminal, seconds.
LINE_EVERY_S = 10.0

# Width of tables if standard output is not a terminal and COLUMNS is not set, characters.
PIPE_WIDTH = 160
# The smallest width that tables are laid out for, characters.
LEAST_WIDTH = 20


@cache
def output() -> Console:
    """The console for results. Its width is COLUMNS, or that of the terminal, or `PIPE_WIDTH`."""
    from rich.console import Console

    return Console(width=_width(), highlight=False)


def saved(text: str, clause: str) -> None:
    """Prints the place of results that have been saved.

    Args:
        text: the line to print, such as "results in out/a".
        clause: the same fact for the command's last message if standard output fails: see `Streams.saved`.
    """
    STREAMS.saved(clause)
    output().print(text, soft_wrap=True, markup=False)


def warn(texts: Iterable[str]) -> None:
    """Prints warnings to standard error, one line each."""
    for text in texts:
        print(f"warning: {text}", file=sys.stderr)


def _width() -> int | None:
    given = os.environ.get("COLUMNS", "")
    if given.isdecimal() and int(given) > 0:
        return max(int(given), LEAST_WIDTH)
    return None if sys.stdout.isatty() else PIPE_WIDTH


def show_table(
    title: str,
    headings: Sequence[str],
    left: Sequence[str],
    rows: Iterable[Sequence[str]],
    least: Sequence[str] = (),
) -> None:
    """Prints a table without cutting names or numbers, at any width.

    Sentences wrap. If the table is still too wide, the columns in `least` are dropped. If that is not enough, a table
    of numbers continues below with its first columns repeated, and a table of sentences becomes a list.

    Args:
        title: the line above the table.
        headings: one for each column.
        left: the columns that are aligned to the left; the others are aligned to the right.
        rows: the cells, one per heading in each row.
        least: columns that may be dropped if the table is too wide; a line names them.
    """
    from rich.text import Text

    from sparelane.terminal.tables import layout

    console = output()
    for part in layout(title, headings, left, [list(row) for row in rows], console.width, least):
        # A name that is longer than a line is not broken.
        console.print(part, soft_wrap=isinstance(part, Text))


class Meter:
    """Shows progress and the remaining time. Called with the finished share, from 0 to 1."""

    def __init__(self, bar: Progress | None, what: str) -> None:
        self._bar = bar
        self._what = what
        self._task = None if bar is None else bar.add_task(what, total=1.0)
        self._began_s = time.monotonic()
        self._printed_s = self._began_s

    def __call__(self, share: float) -> None:
        """Updates the bar, which appears after `SHOWN_AFTER_S`, or prints a line."""
        if self._bar is None or self._task is None:
            self._print_line(share)
            return
        if not self._bar.live.is_started and time.monotonic() - self._began_s > SHOWN_AFTER_S:
            self._bar.start()
        self._bar.update(self._task, completed=share)

    def _print_line(self, share: float) -> None:
        """Prints a line to standard error, at most every `LINE_EVERY_S`."""
        now_s = time.monotonic()
        if now_s - self._printed_s < LINE_EVERY_S:
            return
        self._printed_s = now_s
        left_s = (now_s - self._began_s) * (1 - share) / share if share > 0 else None
        rest = "" if left_s is None else f", about {left_s:.0f} s left"
        print(f"{self._what}: {100 * share:.0f} %{rest}", file=sys.stderr, flush=True)

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Removes the bar while other output is printed."""
        if self._bar is not None:
            self._bar.stop()
        yield


@contextmanager
def progress(what: str) -> Iterator[Meter]:
    """Shows a progress bar on standard error, or lines if that is not a terminal."""
    if not sys.stderr.isatty():
        with STREAMS.in_background(only_errors=True):
            yield Meter(None, what)
        return

    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    bar = Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=False)
    # A stopped terminal must not stall the work.
    with STREAMS.in_background(only_errors=True):
        try:
            yield Meter(bar, what)
        finally:
            bar.stop()


class Waiting:
    """Shows elapsed time for work of unknown length: a spinner on a terminal, otherwise lines."""

    def __init__(self, status: Status | None, what: str) -> None:
        self._status = status
        self._what = what
        self._printed_s = 0.0
        self._started = False

    def __call__(self, seconds: float) -> None:
        """Updates the display after `seconds` in total."""
        if self._status is None:
            if seconds - self._printed_s >= LINE_EVERY_S:
                self._printed_s = seconds
                print(f"{self._what}: {seconds:.0f} s", file=sys.stderr, flush=True)
            return
        if not self._started and seconds > SHOWN_AFTER_S:
            self._started = True
            self._status.start()


@contextmanager
def waiting(what: str) -> Iterator[Waiting]:
    """Shows a spinner on standard error, or lines if that is not a terminal."""
    if not sys.stderr.isatty():
        with STREAMS.in_background(only_errors=True):
            yield Waiting(None, what)
        return

    from rich.console import Console

    status = Console(stderr=True).status(what)
    with STREAMS.in_background(only_errors=True):
        try:
            yield Waiting(status, what)
        finally:
            status.stop()


def duration(seconds: float) -> str:
    """Formats a duration in seconds, minutes or hours."""
    if seconds < 1:
        return f"{seconds:.2g} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} minutes" if seconds < 7200 else f"{seconds / 3600:.1f} hours"

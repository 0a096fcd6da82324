"""Talking to a person: tables to standard output, progress and errors to standard error."""

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

# Work that takes less than this shows no progress bar, seconds.
PATIENCE_S = 2.0

# Where there is no terminal, a line tells how far the work is, so often, seconds.
LINE_EVERY_S = 10.0

# How wide tables may be when they do not go to a terminal and COLUMNS is not set, characters.
PIPE_WIDTH = 160
# No table is laid out for less than this, characters.
LEAST_WIDTH = 20


@cache
def output() -> Console:
    """The console for results: as wide as COLUMNS, else as the terminal, else 160 characters."""
    from rich.console import Console

    return Console(width=_width(), highlight=False)


def saved(words: str, clause: str) -> None:
    """Prints where results are; call it once they are saved.

    Args:
        words: what is printed, as in "results in out/a".
        clause: the same for the command's last message, in case the words cannot be printed: see `Streams.saved`.
    """
    STREAMS.saved(clause)
    output().print(words, soft_wrap=True, markup=False)


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
    """Prints a table in which names and numbers are whole at any width.

    Sentences wrap. Where that is not enough, the columns of `least` are left out; a table of numbers is then continued
    below with its first columns again, and a table of sentences becomes a list.

    Args:
        title: printed above.
        headings: one for each column.
        left: the columns that are aligned to the left; the others are aligned to the right.
        rows: the cells, as many in each row as there are headings.
        least: columns that may be left out if the width does not suffice; a line names them.
    """
    from rich.text import Text

    from sparelane.terminal.tables import layout

    console = output()
    for part in layout(title, headings, left, [list(row) for row in rows], console.width, least):
        # A single name that is longer than a line stays in one piece.
        console.print(part, soft_wrap=isinstance(part, Text))


class Meter:
    """Shows how much is done and how long the rest takes. Call it with a share from 0 to 1."""

    def __init__(self, bar: Progress | None, what: str) -> None:
        self._bar = bar
        self._what = what
        self._task = None if bar is None else bar.add_task(what, total=1.0)
        self._began_s = time.monotonic()
        self._said_s = self._began_s

    def __call__(self, share: float) -> None:
        """Moves the bar, which appears once the work has taken a while."""
        if self._bar is None or self._task is None:
            self._say(share)
            return
        if not self._bar.live.is_started and time.monotonic() - self._began_s > PATIENCE_S:
            self._bar.start()
        self._bar.update(self._task, completed=share)

    def _say(self, share: float) -> None:
        """A line on standard error where that is not a terminal, every ten seconds."""
        now_s = time.monotonic()
        if now_s - self._said_s < LINE_EVERY_S:
            return
        self._said_s = now_s
        left_s = (now_s - self._began_s) * (1 - share) / share if share > 0 else None
        rest = "" if left_s is None else f", about {left_s:.0f} s left"
        print(f"{self._what}: {100 * share:.0f} %{rest}", file=sys.stderr, flush=True)

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Clears the bar away while something else is printed."""
        if self._bar is not None:
            self._bar.stop()
        yield


@contextmanager
def progress(what: str) -> Iterator[Meter]:
    """A bar on standard error after the first two seconds; where that is not a terminal, a line every ten."""
    if not sys.stderr.isatty():
        with STREAMS.in_background(only_errors=True):
            yield Meter(None, what)
        return

    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    bar = Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=False)
    # A terminal that is stopped must not stop the work.
    with STREAMS.in_background(only_errors=True):
        try:
            yield Meter(bar, what)
        finally:
            bar.stop()


class Waiting:
    """A line on standard error every ten seconds, or a spinner on a terminal, for work whose end is not known."""

    def __init__(self, status: Status | None, what: str) -> None:
        self._status = status
        self._what = what
        self._said_s = 0.0
        self._started = False

    def __call__(self, seconds: float) -> None:
        """`seconds` have passed."""
        if self._status is None:
            if seconds - self._said_s >= LINE_EVERY_S:
                self._said_s = seconds
                print(f"{self._what}: {seconds:.0f} s", file=sys.stderr, flush=True)
            return
        if not self._started and seconds > PATIENCE_S:
            self._started = True
            self._status.start()


@contextmanager
def waiting(what: str) -> Iterator[Waiting]:
    """A spinner on standard error after the first two seconds; where that is not a terminal, a line every ten."""
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
    """A span of time in the unit that suits it."""
    if seconds < 1:
        return f"{seconds:.2g} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} minutes" if seconds < 7200 else f"{seconds / 3600:.1f} hours"

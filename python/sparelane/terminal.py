"""Talking to a person: tables to standard output, progress and errors to standard error."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

# Work that takes less than this shows no progress bar, seconds.
PATIENCE_S = 2.0

# How wide tables may be when they do not go to a terminal, characters.
PIPE_WIDTH = 160


@cache
def output() -> Console:
    """Where results go."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else PIPE_WIDTH, highlight=False)


def show_table(title: str, headings: Sequence[str], left: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Prints a table; the columns that `left` names are aligned to the left, the others to the right."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
    for heading in headings:
        table.add_column(heading, justify="left" if heading in left else "right")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    output().print(table)


@contextmanager
def progress(what: str) -> Iterator[Callable[[float], None]]:
    """A bar with the remaining time on standard error; gives the function that moves it, to a share from 0 to 1.

    Nothing appears where standard error is not a terminal, nor in the first two seconds.
    """
    if not sys.stderr.isatty():
        yield lambda fraction: None
        return

    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    bar = Progress(
        TextColumn(what),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
        redirect_stdout=False,
    )
    task = bar.add_task(what, total=1.0)
    began_s = time.monotonic()

    def report(fraction: float) -> None:
        if not bar.live.is_started and time.monotonic() - began_s > PATIENCE_S:
            bar.start()
        bar.update(task, completed=fraction)

    try:
        yield report
    finally:
        bar.stop()

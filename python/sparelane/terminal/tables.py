"""Lays out tables for any width without cutting names or numbers.

Sentences wrap. If the table is still too wide, columns that the caller names are dropped. If that is not enough, a
table of numbers continues below with its first columns repeated, and a table of sentences becomes a list of its rows.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import RenderableType

# The smallest width of a column of sentences, unless its longest word is shorter, characters.
NARROWEST_TEXT = 24
# The space between two columns, and the space of both edges together, which a narrow table omits, characters.
BETWEEN, EDGES = 3, 4


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table.

    Attributes:
        heading: the heading.
        is_left: true if cells are aligned to the left.
        cells: one cell per row.
    """

    heading: str
    is_left: bool
    cells: Sequence[str]

    @property
    def is_prose(self) -> bool:
        """True if the cells are sentences, which may wrap."""
        return self.is_left and any(" " in cell.strip() for cell in self.cells)

    @property
    def natural(self) -> int:
        """The width without wrapping, characters."""
        return max(map(_length, (self.heading, *self.cells)), default=0)

    @property
    def least(self) -> int:
        """The smallest width that cuts no name and no number, characters."""
        heading = max(map(_length, self.heading.split()), default=0)
        if not self.is_prose:
            return max(heading, *map(_length, self.cells), 0)
        longest = max((_length(word) for cell in self.cells for word in cell.split()), default=0)
        return max(heading, min(longest, NARROWEST_TEXT))


def layout(
    title: str,
    headings: Sequence[str],
    left: Sequence[str],
    rows: Sequence[Sequence[str]],
    width: int,
    least: Sequence[str] = (),
) -> Iterator[RenderableType]:
    """Returns the parts of a table. No line is longer than `width`, unless a single name is longer.

    Args:
        title: the line above the table.
        headings: one for each column.
        left: the columns that are aligned to the left; the others are aligned to the right.
        rows: the cells, one per heading in each row.
        width: the available width, characters.
        least: columns to drop, in this order, if the table is too wide; a line names them.
    """
    from rich.text import Text

    columns = [Column(name, name in left, [row[place] for row in rows]) for place, name in enumerate(headings)]
    dropped: list[str] = []
    for name in least:
        if not _fits(columns, width):
            columns = [column for column in columns if column.heading != name]
            dropped.append(name)
    yield Text(title, style="bold")
    if _fits(columns, width):
        yield _table(columns, width)
        if not _fits(columns, width, EDGES):
            yield Text("")
    elif blocks := _blocks(columns, width):
        for number, block in enumerate(blocks):
            if number:
                yield Text(f"{title} (continued)", style="bold")
            yield _table(block, width)
    else:
        for line in _list(columns, width):
            yield Text(line)
        yield Text("")
    if dropped:
        yield Text(f"Columns omitted to fit the width: {', '.join(dropped)}.")


def _length(text: str) -> int:
    from rich.cells import cell_len

    return max(map(cell_len, text.splitlines()), default=0)


def _taken(widths: Sequence[int], edges: int) -> int:
    return sum(widths) + BETWEEN * (len(widths) - 1) + edges


def _fits(columns: Sequence[Column], width: int, edges: int = 0) -> bool:
    return _taken([column.least for column in columns], edges) <= width


def _table(columns: Sequence[Column], width: int) -> RenderableType:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    edges = EDGES if _fits(columns, width, EDGES) else 0
    table = Table(box=box.SIMPLE_HEAD, show_edge=edges > 0, pad_edge=edges > 0)
    for column, wide in zip(columns, _widths(columns, width - edges), strict=True):
        table.add_column(column.heading, justify="left" if column.is_left else "right", width=wide, overflow="fold")
    for cells in zip(*(column.cells for column in columns), strict=True):
        table.add_row(*(Text(cell) for cell in cells))
    return table


def _widths(columns: Sequence[Column], width: int) -> list[int]:
    """The width of each column: its smallest width plus a share of the remaining space, smallest needs first."""
    widths = [column.least for column in columns]
    over = width - _taken(widths, 0)
    by_need = sorted(range(len(columns)), key=lambda place: columns[place].natural - widths[place])
    for rank, place in enumerate(by_need):
        extra = min(columns[place].natural - widths[place], over // (len(by_need) - rank))
        widths[place] += extra
        over -= extra
    return widths


def _blocks(columns: Sequence[Column], width: int) -> list[list[Column]]:
    """Groups of columns that fit, each with the first columns, which name the row; empty for a table of sentences."""
    names = 0
    while names < len(columns) and columns[names].is_left:
        names += 1
    if names == len(columns) or any(column.is_prose for column in columns[names:]):
        return []
    for count in range(max(names, 1), 0, -1):
        first, others = list(columns[:count]), columns[count:]
        if not all(_fits([*first, column], width) for column in others):
            continue
        blocks = [[*first]]
        for column in others:
            if not _fits([*blocks[-1], column], width):
                blocks.append([*first])
            blocks[-1].append(column)
        return blocks
    return []


def _list(columns: Sequence[Column], width: int) -> Iterator[str]:
    """The rows as a list: the first cell, then each other cell on its own line after its heading."""
    for cells in zip(*(column.cells for column in columns), strict=True):
        yield cells[0]
        for column, cell in zip(columns[1:], cells[1:], strict=True):
            if cell:
                yield from textwrap.wrap(
                    f"{column.heading}: {cell}",
                    max(width, 10),
                    initial_indent="  ",
                    subsequent_indent="    ",
                    break_long_words=False,
                    break_on_hyphens=False,
                )

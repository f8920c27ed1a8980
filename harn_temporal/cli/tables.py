"""Tables and lines for people. What is shown comes from outside, so nothing in it is obeyed."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

PIPE_WIDTH = 1000
"""Columns where stdout is no terminal: whatever reads it gets whole lines."""

LEAST_CUT = 24
PADDING = 3

MANY = 200
"""Rows from which on a table is written as plain lines: rich takes a second for a thousand."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Column:
    """`rank` 0 is always shown; of the others the highest is left out first when space is short.

    A text in a column that is `cut` gives way before that happens.
    """

    heading: str
    rank: int = 0
    right: bool = False
    cut: bool = False


def printable(text: str) -> str:
    """One line without anything that a terminal would act upon, as a payload may hold it."""
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def console_for_people() -> Console:
    from rich.console import Console

    width = None if sys.stdout.isatty() else PIPE_WIDTH
    return Console(width=width, highlight=False, markup=False, emoji=False)


def print_table(
    columns: Sequence[Column], rows: Sequence[Sequence[str]], console: Console | None = None
) -> None:
    """Print rows of texts under their headings, without the columns that do not fit."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    console = console or console_for_people()
    cells = [[printable(text) for text in row] for row in rows]
    widths = _widths(columns, cells, console.width)
    if len(cells) >= MANY and _fits(columns, cells, widths, console.width):
        console.file.writelines(_lines(columns, cells, widths))
        return
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for index, width in widths.items():
        column = columns[index]
        table.add_column(
            column.heading,
            justify="right" if column.right else "left",
            max_width=width,
            no_wrap=column.cut,
            overflow="ellipsis" if column.cut else "fold",
        )
    for row in cells:
        table.add_row(*(Text(row[index]) for index in widths))
    console.print(table)


def _widths(
    columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int
) -> dict[int, int | None]:
    """The columns that fit, by index, with the width of each that is cut to fit."""
    from rich.cells import cell_len

    natural = [
        max(cell_len(text) for text in (column.heading, *(row[index] for row in rows)))
        for index, column in enumerate(columns)
    ]
    least = [
        min(wide, LEAST_CUT) if column.cut else wide
        for wide, column in zip(natural, columns, strict=True)
    ]
    shown = list(range(len(columns)))

    def room() -> int:
        return width + PADDING - sum(least[index] + PADDING for index in shown)

    while room() < 0 and any(columns[index].rank for index in shown):
        shown.remove(max(shown, key=lambda index: columns[index].rank))
    spare = max(0, room())
    return {index: least[index] + spare if columns[index].cut else None for index in shown}


def _fits(
    columns: Sequence[Column],
    cells: Sequence[Sequence[str]],
    widths: dict[int, int | None],
    width: int,
) -> bool:
    """Whether no text has to be folded."""
    needed = sum(_needed(columns, cells, widths).values()) + PADDING * (len(widths) - 1)
    return needed <= width


def _needed(
    columns: Sequence[Column], cells: Sequence[Sequence[str]], widths: dict[int, int | None]
) -> dict[int, int]:
    from rich.cells import cell_len

    found = {}
    for index, width in widths.items():
        texts = (columns[index].heading, *(row[index] for row in cells))
        natural = max(map(cell_len, texts))
        found[index] = natural if width is None else min(width, natural)
    return found


def _lines(
    columns: Sequence[Column], cells: Sequence[Sequence[str]], widths: dict[int, int | None]
) -> Iterator[str]:
    """The lines that rich makes of the table."""
    from rich.cells import cell_len, set_cell_size

    needed = _needed(columns, cells, widths)

    def fitted(index: int, text: str) -> str:
        missing = needed[index] - cell_len(text)
        if missing < 0:
            return set_cell_size(text, needed[index] - 1) + "…"
        return " " * missing + text if columns[index].right else text + " " * missing

    def line(row: Sequence[str]) -> str:
        return (" " * PADDING).join(fitted(index, row[index]) for index in needed) + "\n"

    yield line([column.heading for column in columns])
    yield "─" * (sum(needed.values()) + PADDING * (len(needed) - 1)) + "\n"
    yield from map(line, cells)


def print_fields(fields: Sequence[tuple[str, str]], console: Console | None = None) -> None:
    """Print names and values below each other, the values in line."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in fields:
        table.add_row(Text(name, style="dim"), Text(printable(value)))
    (console or console_for_people()).print(table)

"""Tables and lines for people. What is shown comes from outside, so nothing in it is obeyed."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

PIPE_WIDTH = 1000
"""Columns where stdout is no terminal: whatever reads it gets whole lines."""

LEAST_CUT = 24
PADDING = 3

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
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    widths = _widths(columns, cells, console.width)
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

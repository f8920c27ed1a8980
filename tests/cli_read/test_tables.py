"""Tables on terminals of any width, with whatever a payload holds."""

import io

import pytest
from rich.console import Console

from harn_temporal.cli import tables
from harn_temporal.cli.tables import Column, print_fields, print_table, printable

COLUMNS = [Column("id"), Column("error", rank=1, cut=True), Column("n", rank=2, right=True)]
ROWS = [["dlq_0192", "a message of some length that goes on", "7"], ["dlq_1", "short", "12"]]


def drawn(width: int, rows: list[list[str]] = ROWS) -> list[str]:
    out = io.StringIO()
    print_table(COLUMNS, rows, Console(file=out, width=width, markup=False, highlight=False))
    return [line.rstrip() for line in out.getvalue().splitlines()]


@pytest.mark.parametrize(
    ("width", "expected"),
    [
        (
            60,
            [
                "id         error                                    n",
                "dlq_0192   a message of some length that goes on    7",
                "dlq_1      short                                   12",
            ],
        ),
        (
            40,
            [
                "id         error                       n",
                "dlq_0192   a message of some lengt…    7",
                "dlq_1      short                      12",
            ],
        ),
        (
            39,
            [
                "id         error",
                "dlq_0192   a message of some length th…",
                "dlq_1      short",
            ],
        ),
        (20, ["id", "dlq_0192", "dlq_1"]),
        (5, ["id", "dlq_0", "192", "dlq_1"]),
    ],
)
def test_what_does_not_fit_is_cut_then_left_out(width: int, expected: list[str]) -> None:
    heading, rule, *rows = drawn(width)
    assert set(rule) == {"─"}
    assert [heading, *rows] == expected


@pytest.mark.parametrize("width", [200, 60, 40, 39, 20, 5])
def test_a_long_table_is_drawn_as_a_short_one(monkeypatch, width: int) -> None:
    rows = [*ROWS, ["dlq_\u5b57", "\u6f22" * 30, "1"]]
    short = drawn(width, rows)
    monkeypatch.setattr(tables, "MANY", 1)
    assert drawn(width, rows) == short


def test_a_table_without_rows_has_its_headings() -> None:
    out = io.StringIO()
    print_table(COLUMNS, [], Console(file=out, width=60))
    assert out.getvalue().split()[:3] == ["id", "error", "n"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain ünïcode 日本", "plain ünïcode 日本"),
        ("[red]x[/]", "[red]x[/]"),
        ("a\nb\tc", r"a\nb\tc"),
        ("\x1b]0;title\x07", r"\x1b]0;title\x07"),
        ("\x9b31m", r"\x9b31m"),
        ("\u202egpj.exe", r"\u202egpj.exe"),
        ("nul\x00", r"nul\x00"),
        ("half \ud83d", r"half \ud83d"),
    ],
)
def test_nothing_shown_is_obeyed_by_the_terminal(text: str, expected: str) -> None:
    assert printable(text) == expected
    out = io.StringIO()
    console = Console(file=out, width=60, markup=False, highlight=False, emoji=False)
    print_fields([("name", text)], console)
    assert out.getvalue().rstrip() == f"name  {expected}"

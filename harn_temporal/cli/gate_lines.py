"""How `gate` shows gates to people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harn_temporal.cli.output import line
from harn_temporal.cli.tables import Column, console_for_people, print_fields, print_table
from harn_temporal.durations import format_duration


def print_gates(found: dict[str, Any]) -> None:
    gates, circuits = found["gates"], found["circuits"]
    if gates:
        print_table(
            [
                Column("kind"),
                Column("gate", cut=True),
                Column("limit", right=True),
                Column("held", right=True),
                Column("waiting", right=True),
                Column("in window", right=True, rank=1),
                Column("due", rank=2),
            ],
            [
                [
                    each["kind"],
                    each["gate"],
                    _limit(each),
                    str(each["held"]),
                    str(each["waiting"]),
                    _text(each["in_window"]),
                    _text(each["due_at"]),
                ]
                for each in gates
            ],
        )
    elif not circuits:
        line("No gate is in use.")
    if circuits:
        if gates:
            console_for_people().print()
        print_table(
            [
                Column("destination", cut=True),
                Column("circuit"),
                Column("failures", right=True),
                Column("open until"),
                Column("probe", rank=1, cut=True),
            ],
            [
                [
                    each["destination"],
                    each["state"],
                    str(each["failures"]),
                    _text(each["open_until"]),
                    _text(each["probe"]),
                ]
                for each in circuits
            ],
        )


def print_gate(view: dict[str, Any]) -> None:
    fields = [
        ("gate", view["gate"]),
        ("kind", view["kind"]),
        ("limit", _limit(view)),
        ("held", str(view["held"])),
        ("waiting", str(view["waiting"])),
        ("in window", _text(view["in_window"])),
        ("due", _text(view["due_at"])),
    ]
    print_fields([(name, value) for name, value in fields if value != "-"])
    _print_dispatches("holder", view["holders"], ("acquired_at", "expires_at"))
    _print_dispatches("waiter", view["waiters"], ("arrived_at", "until"))
    console_for_people().print()


def _print_dispatches(who: str, found: Sequence[dict[str, Any]], names: Sequence[str]) -> None:
    if found:
        console_for_people().print()
        print_table(
            [Column(who, cut=True), *(Column(name.replace("_", " ")) for name in names)],
            [[each["holder"], *(_text(each[name]) for name in names)] for each in found],
        )


def _limit(view: dict[str, Any]) -> str:
    if view["max"] is None:
        return "-"
    period = view["period_ms"]
    return str(view["max"]) + (f" in {format_duration(period)}" if period else "")


def _text(value: Any) -> str:
    return "-" if value is None else str(value)

"""Options of commands that act on dispatches or dead letters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from harn_temporal.errors import UsageError

if TYPE_CHECKING:
    from harn_temporal.operations.audit import Intent, Operation
    from harn_temporal.operations.replay import Version

DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="Show what would be done, and do nothing")
]
WhereOption = Annotated[
    str | None,
    typer.Option(
        "--where",
        metavar="CEL",
        help="All for which this is true: it sees event, binding, attempt, outcome and audit",
    ),
]
TriggerOption = Annotated[
    str | None, typer.Option("--trigger", metavar="ID", help="Only of this trigger, or id@vN")
]
RateOption = Annotated[
    float | None, typer.Option("--rate", metavar="N", help="At most so many each second")
]
WaitOption = Annotated[
    bool,
    typer.Option("--wait", help="Until a running worker has ended the replays; 1 if one failed"),
]
VersionOption = Annotated[
    str,
    typer.Option(
        "--version",
        metavar="recorded|current",
        help="The version of the binding: the one that the event was accepted under, or today's",
    ),
]


def intent(
    operation: Operation, *, dry_run: bool, rate: float | None, filter_text: str | None
) -> Intent:
    """What is asked for, by the user of this process. Raises UsageError for a rate that is none."""
    from harn_temporal.operations.audit import Intent, operator_name

    if rate is not None and not 0 < rate < float("inf"):
        raise UsageError(f"--rate {rate:g} is no number of dispatches a second; give one above 0")
    return Intent(
        operation,
        dry_run=dry_run,
        filter=filter_text,
        requested_by=operator_name(),
        rate=rate,
    )


def version_named(text: str) -> Version:
    if text == "recorded":
        return "recorded"
    if text == "current":
        return "current"
    raise UsageError(f"--version {text!r} is neither recorded nor current")

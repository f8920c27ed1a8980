"""`harn-temporal dlq`: dispatches whose retries ran out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from harn_temporal.cli import dlq_operations
from harn_temporal.cli.dlq_filters import DeadLetterFilters
from harn_temporal.cli.option_groups import grouped
from harn_temporal.cli.options import JsonOption, common_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harn_temporal.eventlog.dead_letters import StoredDeadLetter
    from harn_temporal.inspection.dead_letters import Contents

NAMED = 10
"""Records that a warning names."""

app = typer.Typer(no_args_is_help=True, help="Dead letters: dispatches whose retries ran out.")


@app.command("ls")
@grouped
def list_dead_letters(
    ctx: typer.Context,
    *,
    chosen: DeadLetterFilters,
    every_state: Annotated[
        bool, typer.Option("--all", help="Also what was resolved or discarded")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """List dead letters, the latest last.

    Example: harn-temporal dlq ls --trigger github-new-issue --newer-than 1d
    """
    from harn_temporal.cli.output import note, print_json, warn
    from harn_temporal.cli.reading import reading
    from harn_temporal.clock import system_clock
    from harn_temporal.inspection.dead_letters import dead_letters, letter_json

    wanted = chosen.selection(state=None if every_state else "pending")
    found = reading(common_options(ctx), lambda log: dead_letters(log, wanted))
    now_ms = system_clock()
    letters = [letter for letter in found.letters if wanted.admits(letter, now_ms)]
    if found.unreadable:
        warn(f"left out what cannot be read in trigger.dlq: record {_first(found.unreadable)}")
    if as_json:
        print_json({"dead_letters": [letter_json(letter, now_ms) for letter in letters]})
        return
    if not letters:
        note("No dead letters.")
        return
    _print_letters(letters, now_ms)


@app.command("show")
def show_dead_letter(
    ctx: typer.Context,
    wanted: Annotated[str, typer.Argument(metavar="ID", help="Of a dead letter, or of its event")],
    *,
    as_json: JsonOption = False,
) -> None:
    """Show a dead letter with its event and the history of its attempts.

    Example: harn-temporal dlq show dlq_01994b2c-7f6e-7c3a-9d51-0a4be2f6c1d7
    """
    from harn_temporal.cli.output import print_json
    from harn_temporal.cli.reading import reading
    from harn_temporal.clock import system_clock
    from harn_temporal.eventlog.log import EventLog
    from harn_temporal.inspection.dead_letters import contents, find, letter_json

    async def read(log: EventLog) -> tuple[StoredDeadLetter, Contents]:
        letter = await find(log, wanted)
        return letter, await contents(log, letter)

    letter, held = reading(common_options(ctx), read)
    now_ms = system_clock()
    if as_json:
        print_json(letter_json(letter, now_ms) | held.to_json())
        return
    _print_letter(letter, held, now_ms)


def _first(ids: Sequence[int]) -> str:
    """`1, 2, 3 and 7 more`: a log may hold any number of them."""
    shown = ", ".join(str(event_id) for event_id in ids[:NAMED])
    return f"{shown} and {len(ids) - NAMED} more" if len(ids) > NAMED else shown


def _print_letters(letters: list[StoredDeadLetter], now_ms: int) -> None:
    from harn_temporal.cli.tables import Column, print_table

    columns = [
        Column("id"),
        Column("state", rank=1),
        Column("binding", rank=1),
        Column("kind", rank=5),
        Column("tenant", rank=4),
        Column("attempts", rank=6, right=True),
        Column("class", rank=2),
        Column("age", rank=3, right=True),
        Column("error", rank=7, cut=True),
    ]
    rows = [
        [
            letter.id,
            letter.state,
            letter.binding_key,
            f"{letter.provider} {letter.kind}",
            letter.tenant_id or "-",
            str(letter.attempts),
            letter.error_class,
            _age(letter, now_ms),
            letter.error,
        ]
        for letter in letters
    ]
    print_table(columns, rows)


def _print_letter(letter: StoredDeadLetter, held: Contents, now_ms: int) -> None:
    from harn_temporal.cli.tables import Column, console_for_people, print_fields, print_table
    from harn_temporal.clock import rfc3339

    fields = [
        ("id", letter.id),
        ("state", letter.state),
        ("binding", letter.binding_key),
        ("event", f"{letter.event_id} ({letter.provider} {letter.kind})"),
        ("tenant", letter.tenant_id or "-"),
        ("died", f"{rfc3339(letter.moved_at_ms)} ({_age(letter, now_ms)} ago)"),
        ("error", f"{letter.error} ({letter.error_class})"),
    ]
    print_fields(fields)
    names = ("attempt", "at", "status", "error")
    rows = [[_text(attempt.get(name)) for name in names] for attempt in held.retry_history]
    if rows:
        print_table([Column(name, cut=name == "error") for name in names], rows)
    console = console_for_people()
    console.print()
    console.print_json(data=held.event, ensure_ascii=True)


def _text(value: object) -> str:
    return "-" if value is None else str(value)


def _age(letter: StoredDeadLetter, now_ms: int) -> str:
    from harn_temporal.durations import format_duration

    return format_duration(max(0, now_ms - letter.moved_at_ms) // 1000 * 1000)


app.command("replay")(dlq_operations.replay)
app.command("purge")(dlq_operations.purge)
app.command("export")(dlq_operations.export)

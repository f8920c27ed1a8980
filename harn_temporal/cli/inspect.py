"""`harn-temporal inspect`: the state of a store in one view."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from harn_temporal.cli.options import JsonOption, common_options

if TYPE_CHECKING:
    from harn_temporal.inspection.overview import Overview


def inspect(ctx: typer.Context, *, as_json: JsonOption = False) -> None:
    """Show the dispatcher's figures, bindings, pumps, queues and topics of a store.

    Everything comes from the store, so it is the same in every process. It starts no server.

    Example: harn-temporal inspect --json
    """
    from harn_temporal.cli.output import print_json
    from harn_temporal.cli.reading import reading
    from harn_temporal.inspection.overview import overview

    found = reading(common_options(ctx), overview)
    if as_json:
        print_json(found.to_json())
    else:
        _print(found)


def _print(found: Overview) -> None:
    from harn_temporal.cli.tables import console_for_people, print_fields

    figures = found.dispatcher
    print_fields(
        [
            ("store", found.store_id),
            ("in flight", str(figures.in_flight)),
            ("retry queue", str(figures.retry_queue)),
            ("dead letters", str(figures.dlq)),
            ("admitted", f"{figures.admitted} not begun yet"),
            ("waiting", f"{figures.waiting} envelopes that no dispatch was started for"),
            *([("lost", f"{figures.lost}; see `recover`")] if figures.lost else []),
            *([("skipped", f"{found.skipped} records; see `doctor`")] if found.skipped else []),
        ]
    )
    console = console_for_people()
    for print_part, wanted in (
        (_print_bindings, found.bindings),
        (_print_pumps, found.pumps),
        (_print_queues, found.queues),
        (_print_topics, found.topics),
    ):
        if wanted:
            console.print()
            print_part(found)


def _print_bindings(found: Overview) -> None:
    from harn_temporal.cli.tables import Column, print_table

    columns = [
        Column("binding"),
        Column("state"),
        Column("package", rank=3),
        Column("source", rank=1),
        Column("handler", rank=2),
    ]
    rows = [
        [
            binding.binding_key,
            binding.state,
            binding.package or "-",
            f"{binding.provider} {binding.kind}",
            binding.handler_kind,
        ]
        for binding in found.bindings
    ]
    print_table(columns, rows)


def _print_pumps(found: Overview) -> None:
    from harn_temporal.cli.tables import Column, print_table

    columns = [
        Column("pump of"),
        Column("seen"),
        Column("backlog", right=True),
        Column("oldest", rank=2, right=True),
        Column("outstanding", rank=1, right=True),
        Column("cursors", rank=3),
    ]
    rows = []
    for pump in found.pumps:
        cursors = [f"{each.topic} {each.cursor}/{each.last_id}" for each in pump.cursors]
        rows.append(
            [
                pump.package,
                _ago(pump.seen_at_ms, found.now_ms, "never"),
                str(pump.backlog),
                _ago(pump.oldest_waiting_at_ms, found.now_ms, "-"),
                str(pump.outstanding),
                ", ".join(cursors) or "-",
            ]
        )
    print_table(columns, rows)


def _print_queues(found: Overview) -> None:
    from harn_temporal.cli.tables import Column, print_table

    columns = [Column("queue"), *(Column(name, right=True) for name in _QUEUE_FIGURES)]
    rows = [
        [str(queue["queue"]), *(str(queue[name.replace(" ", "_")]) for name in _QUEUE_FIGURES)]
        for queue in found.queues
    ]
    print_table(columns, rows)


_QUEUE_FIGURES = ("ready", "in flight", "acked", "purged", "responses")


def _print_topics(found: Overview) -> None:
    from harn_temporal.cli.tables import Column, print_table

    rows = [[head.topic, str(head.last_id)] for head in found.topics]
    print_table([Column("topic"), Column("last id", right=True)], rows)


def _ago(at_ms: int | None, now_ms: int, never: str) -> str:
    from harn_temporal.durations import format_duration

    if at_ms is None:
        return never
    return f"{format_duration(max(0, now_ms - at_ms) // 1000 * 1000)} ago"

"""`harn-temporal log`: the EventLog itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from harn_temporal.cli.options import JsonOption, common_options

if TYPE_CHECKING:
    from harn_temporal.eventlog.log import EventLog, Record
    from harn_temporal.inspection.chain import ChainReport

app = typer.Typer(no_args_is_help=True, help="The EventLog: read, follow, verify, rebuild.")

TopicsArgument = Annotated[
    list[str] | None, typer.Argument(metavar="[TOPIC]…", help="All topics where none is named")
]
JsonLinesOption = Annotated[
    bool, typer.Option("--json", help="Print one JSON object a record, and nothing else, on stdout")
]


@app.command("topics")
def list_topics(
    ctx: typer.Context,
    prefix: Annotated[str, typer.Argument(help="Only topics that begin so")] = "",
    *,
    as_json: JsonOption = False,
) -> None:
    """List the topics, with the id of the last record of each.

    Example: harn-temporal log topics trigger.
    """
    from harn_temporal.cli.output import note, print_json
    from harn_temporal.cli.reading import reading
    from harn_temporal.cli.tables import Column, print_table

    heads = reading(common_options(ctx), lambda log: log.topics(prefix))
    if as_json:
        print_json({"topics": [{"topic": head.topic, "last_id": head.last_id} for head in heads]})
    elif heads:
        rows = [[head.topic, str(head.last_id)] for head in heads]
        print_table([Column("topic"), Column("last id", right=True)], rows)
    else:
        note("No topics.")


@app.command("read")
def read_topic(
    ctx: typer.Context,
    topic: Annotated[str, typer.Argument(help="As `log topics` shows it")],
    *,
    after: Annotated[int, typer.Option("--after", metavar="ID", min=0, help="Begin behind it")] = 0,
    limit: Annotated[
        int | None, typer.Option("--limit", metavar="N", min=1, help="At most so many records")
    ] = None,
    last: Annotated[
        int | None, typer.Option("--last", metavar="N", min=1, help="Only the last so many")
    ] = None,
    kind: Annotated[str | None, typer.Option("--kind", help="Only records of this kind")] = None,
    event: Annotated[
        str | None, typer.Option("--event", metavar="ID", help="Only records about this event")
    ] = None,
    as_json: JsonLinesOption = False,
) -> None:
    """Read the records of a topic.

    Example: harn-temporal log read trigger.outbox --last 5 --json
    """
    from harn_temporal.cli.reading import reading
    from harn_temporal.errors import NotFoundError
    from harn_temporal.inspection.paging import records_of

    def wanted(record: Record) -> bool:
        return (kind is None or record.kind == kind) and (
            event is None or record.headers.get("event_id") == event
        )

    async def read(log: EventLog) -> None:
        head = await log.query(lambda reader: reader.head(topic))
        if head == 0:
            raise NotFoundError(f"no topic {topic!r}. `harn-temporal log topics` lists them")
        start = after if last is None else max(after, head - last)
        count = 0
        kinds = set()
        async for record in records_of(log, topic, start):
            kinds.add(record.kind)
            if wanted(record):
                _print(record, as_json=as_json, with_topic=False)
                count += 1
                if count == limit:
                    return
        if count == 0:
            await _say_why_there_are_none(log, kinds, kind, event)

    reading(common_options(ctx), read)


@app.command("tail")
def tail_topics(
    ctx: typer.Context,
    topics: TopicsArgument = None,
    *,
    last: Annotated[
        int, typer.Option("--last", metavar="N", min=0, help="Begin with the last so many of each")
    ] = 0,
    limit: Annotated[
        int | None, typer.Option("--limit", metavar="N", min=1, help="End after so many records")
    ] = None,
    as_json: JsonLinesOption = False,
) -> None:
    """Print records as they are appended, until Ctrl-C.

    Example: harn-temporal log tail trigger.outbox trigger.dlq --last 3
    """
    from harn_temporal.cli.output import warn
    from harn_temporal.cli.reading import reading
    from harn_temporal.inspection.following import follow

    async def tail(log: EventLog) -> None:
        known = {head.topic for head in await log.topics()}
        for topic in topics or ():
            if topic not in known:
                warn(f"no topic {topic!r} yet; its records are printed once there are some")
        count = 0
        async for record in follow(log, topics or (), last):
            _print(record, as_json=as_json, with_topic=True)
            count += 1
            if count == limit:
                return

    reading(common_options(ctx), tail)


@app.command("verify")
def verify_topics(
    ctx: typer.Context, topics: TopicsArgument = None, *, as_json: JsonOption = False
) -> None:
    """Check the hash chain of each topic. Exit code 1 where a record was altered or is gone.

    Example: harn-temporal log verify trigger.outbox
    """
    from harn_temporal.cli.output import print_json, warn
    from harn_temporal.cli.reading import reading
    from harn_temporal.errors import NotFoundError
    from harn_temporal.eventlog.topics import is_topic
    from harn_temporal.inspection.chain import verify

    async def check(log: EventLog) -> list[ChainReport]:
        known = [head.topic for head in await log.topics()]
        unknown = [topic for topic in topics or () if topic not in known]
        if unknown:
            raise NotFoundError(f"no topic {unknown[0]!r}. `harn-temporal log topics` lists them")
        for topic in known:
            if not topics and not is_topic(topic):
                warn(f"left out {topic!r}, which another program wrote: it is no topic")
        return [await verify(log, topic) for topic in topics or filter(is_topic, known)]

    reports = reading(common_options(ctx), check)
    intact = all(report.intact for report in reports)
    if as_json:
        print_json({"intact": intact, "topics": [report.to_json() for report in reports]})
    else:
        _print_reports(reports)
    if not intact:
        raise typer.Exit(1)


@app.command("rebuild")
def rebuild_projections(ctx: typer.Context, *, as_json: JsonOption = False) -> None:
    """Make the projections anew from the log, while others go on appending.

    Example: harn-temporal log rebuild
    """
    import time

    from harn_temporal.cli.output import note, print_json
    from harn_temporal.cli.reading import reading
    from harn_temporal.durations import format_duration

    began = time.monotonic()
    reading(common_options(ctx), lambda log: log.rebuild())
    took_ms = round((time.monotonic() - began) * 1000)
    if as_json:
        print_json({"rebuilt": True, "took_ms": took_ms})
    else:
        note(f"Projections rebuilt in {format_duration(took_ms)}.")


async def _say_why_there_are_none(
    log: EventLog, kinds: set[str], kind: str | None, event: str | None
) -> None:
    """`kinds` are those of the records that were looked at. A kind or id may be mistyped."""
    from harn_temporal.cli.output import note

    if kind is not None and kinds and kind not in kinds:
        note(f"No records of kind {kind!r}. Those here are of kind {', '.join(sorted(kinds))}.")
        return
    if event is not None and not await log.query(lambda reader: reader.event_index.of_event(event)):
        near = await log.query(lambda reader: reader.event_index.near(event))
        hint = f" Did you mean {' or '.join(near)}?" if near else ""
        note(f"No records about event {event!r}.{hint}")
        return
    note("No records.")


def _print(record: Record, *, as_json: bool, with_topic: bool) -> None:
    import shutil
    import sys

    from harn_temporal.cli.output import line, print_json_line
    from harn_temporal.cli.record_lines import record_json, record_text

    if as_json:
        print_json_line(record_json(record))
        return
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    line(record_text(record, with_topic=with_topic, width=width))


def _print_reports(reports: list[ChainReport]) -> None:
    from harn_temporal.cli.output import note
    from harn_temporal.cli.tables import Column, print_table

    columns = [
        Column("topic"),
        Column("records", rank=1, right=True),
        Column("without hash", rank=2, right=True),
        Column("state"),
    ]
    rows = [
        [
            report.topic,
            str(report.records),
            str(report.unsealed),
            "intact" if report.intact else f"{len(report.findings)} found",
        ]
        for report in reports
    ]
    if not reports:
        note("No topics.")
        return
    print_table(columns, rows)
    for report in reports:
        for finding in report.findings:
            note(f"{report.topic} {finding.event_id} {finding.flaw}: {finding.detail}")

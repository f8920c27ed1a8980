"""`harn-temporal dlq replay`, `dlq purge` and `dlq export`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from harn_temporal.cli.dlq_filters import DeadLetterFilters
from harn_temporal.cli.operation_options import DryRunOption, RateOption, VersionOption, WaitOption
from harn_temporal.cli.option_groups import grouped
from harn_temporal.cli.options import JsonOption, common_options
from harn_temporal.errors import UsageError

if TYPE_CHECKING:
    from harn_temporal.eventlog.dead_letters import StoredDeadLetter
    from harn_temporal.eventlog.log import EventLog
    from harn_temporal.inspection.dead_letter_selection import Selection
    from harn_temporal.operations.report import Report

IdsArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="[ID]…", help="Of dead letters, or of their events; or use filters"),
]


@grouped
def replay(
    ctx: typer.Context,
    ids: IdsArgument = None,
    *,
    chosen: DeadLetterFilters,
    version: VersionOption = "recorded",
    dry_run: DryRunOption = False,
    rate: RateOption = None,
    wait: WaitOption = False,
    as_json: JsonOption = False,
) -> None:
    """Dispatch the events of dead letters again; a replay that succeeds resolves its dead letter.

    Name dead letters, or choose them by filters. Exit code 1 where one that was named could not
    be replayed.

    Example: harn-temporal dlq replay --error-class provider_5xx --newer-than 1d --rate 5
    """
    from harn_temporal.cli.operation_options import intent, version_named
    from harn_temporal.cli.operation_reports import ended, show, unsuccessful
    from harn_temporal.cli.reading import reading
    from harn_temporal.operations.dead_letters import replay_letters

    filters = chosen.selection()
    _check_choice(ids, filters)
    wanted = intent("dlq_replay", dry_run=dry_run, rate=rate, filter_text=_text(ids, filters))
    under = version_named(version)

    async def work(log: EventLog) -> tuple[Report, list[str]]:
        letters = await _chosen(log, ids, filters)
        report = await replay_letters(log, letters, wanted, under)
        return await ended(log, report, wait=wait)

    report, unseen = reading(common_options(ctx), work)
    show(report, unseen, as_json=as_json)
    if unsuccessful(report) or (ids and report.skipped):
        raise typer.Exit(1)


@grouped
def purge(
    ctx: typer.Context,
    ids: IdsArgument = None,
    *,
    chosen: DeadLetterFilters,
    confirm: Annotated[
        bool, typer.Option("--confirm", help="Do it; without this nothing is done")
    ] = False,
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
) -> None:
    """Give dead letters up: they are no longer pending, and their records stay in the log.

    Example: harn-temporal dlq purge --older-than 30d --confirm
    """
    from harn_temporal.cli.operation_options import intent
    from harn_temporal.cli.operation_reports import show
    from harn_temporal.cli.reading import reading
    from harn_temporal.operations.dead_letters import purge_letters

    filters = chosen.selection()
    wanted = intent("dlq_purge", dry_run=dry_run, rate=None, filter_text=_text(ids, filters))

    async def work(log: EventLog) -> Report:
        letters = await _chosen(log, ids, filters)
        if not confirm and not dry_run:
            raise UsageError(
                f"this discards {len(letters)} dead letters; add --confirm to do it, or --dry-run "
                "to see them"
            )
        return await purge_letters(log, letters, wanted)

    show(reading(common_options(ctx), work), [], as_json=as_json)


@grouped
def export(
    ctx: typer.Context,
    ids: IdsArgument = None,
    *,
    chosen: DeadLetterFilters,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Write a file for each, named after its id"),
    ] = None,
) -> None:
    """Print dead letters as fixtures for tests, in Harn's format harn.dlq.fixture.v1.

    One that is named is one JSON document; several are one document a line.

    Example: harn-temporal dlq export --trigger github-new-issue --out fixtures
    """
    from harn_temporal.cli.output import note, print_json, print_json_line
    from harn_temporal.cli.reading import reading
    from harn_temporal.operations.dead_letters import fixture

    filters = chosen.selection()

    async def work(log: EventLog) -> list[tuple[str, dict[str, Any]]]:
        letters = await _chosen(log, ids, filters)
        return [(letter.id, await fixture(log, letter)) for letter in letters]

    found = reading(common_options(ctx), work)
    if out is not None:
        _write(out, found)
        note(f"Wrote {len(found)} fixtures to {out}.")
    elif ids is not None and len(found) == 1:
        print_json(found[0][1])
    else:
        for _, document in found:
            print_json_line(document)


def _write(folder: Path, documents: list[tuple[str, dict[str, Any]]]) -> None:
    from harn_temporal.eventlog.topics import safe_topic

    try:
        folder.mkdir(parents=True, exist_ok=True)
        for letter_id, document in documents:
            path = folder / f"{safe_topic(letter_id)}.json"
            path.write_text(json.dumps(document, indent=2) + "\n", "utf-8")
    except OSError as error:
        raise UsageError(f"cannot write to {folder}: {error.strerror or error}") from error


def _check_choice(ids: list[str] | None, filters: Selection) -> None:
    if not ids and filters.text is None:
        raise UsageError("name dead letters, or choose them by filters such as --trigger")


def _text(ids: list[str] | None, filters: Selection) -> str | None:
    return None if ids else filters.text


async def _chosen(
    log: EventLog, ids: list[str] | None, filters: Selection
) -> list[StoredDeadLetter]:
    """Those named, whatever their state, else those that are pending and pass the filters."""
    from harn_temporal.clock import system_clock
    from harn_temporal.inspection.dead_letters import dead_letters, find

    if ids:
        if filters.text is not None:
            raise UsageError("name dead letters or choose them by filters, not both")
        return list(
            {letter.id: letter for letter in [await find(log, each) for each in ids]}.values()
        )
    now_ms = system_clock()
    found = await dead_letters(log, filters)
    return [letter for letter in found.letters if filters.admits(letter, now_ms)]

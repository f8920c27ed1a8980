"""`harn-temporal trigger cancel` and `trigger replay`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from harn_temporal.cli.operation_options import (
    DryRunOption,
    RateOption,
    TriggerOption,
    VersionOption,
    WaitOption,
    WhereOption,
)
from harn_temporal.cli.options import JsonOption, common_options
from harn_temporal.errors import UsageError

if TYPE_CHECKING:
    from harn_temporal.operations.report import Report
    from harn_temporal.operations.targets import Selection

EventArgument = Annotated[
    str | None, typer.Argument(metavar="[EVENT_ID]", help="An event's id; or use --where")
]


def cancel(
    ctx: typer.Context,
    event_id: EventArgument = None,
    *,
    where: WhereOption = None,
    trigger: TriggerOption = None,
    dry_run: DryRunOption = False,
    rate: RateOption = None,
    as_json: JsonOption = False,
) -> None:
    """Cancel the dispatches of an event, or all that an expression selects.

    A running handler is told, a retry wait ends at once, and what has not started never will.
    So are the jobs of worker queues that a consumer holds. Replays are dispatches of their own,
    which the Web UI cancels.

    Example: harn-temporal trigger cancel --where 'attempt.status == "retry_scheduled"' --dry-run
    """
    from harn_temporal.cli.operation_options import intent
    from harn_temporal.cli.operation_reports import show, unseen_packages
    from harn_temporal.cli.reading import reading
    from harn_temporal.eventlog.log import EventLog
    from harn_temporal.operations.cancel import cancel as cancel_all
    from harn_temporal.operations.targets import select

    selection = replace(_selection(event_id, where, trigger), jobs=True)
    wanted = intent("cancel", dry_run=dry_run, rate=rate, filter_text=selection.filter)

    async def work(log: EventLog) -> tuple[Report, list[str]]:
        report = await cancel_all(log, await select(log, selection), wanted)
        return report, await unseen_packages(log, report)

    report, unseen = reading(common_options(ctx), work)
    show(report, unseen, as_json=as_json)


def replay(
    ctx: typer.Context,
    event_id: EventArgument = None,
    *,
    where: WhereOption = None,
    trigger: TriggerOption = None,
    version: VersionOption = "recorded",
    dry_run: DryRunOption = False,
    rate: RateOption = None,
    wait: WaitOption = False,
    as_json: JsonOption = False,
) -> None:
    """Dispatch a recorded event again, or all that an expression selects.

    The event keeps its id, headers and trace; its dedupe key does not stop it. Exit code 1 where
    an event that was named could not be replayed.

    Example: harn-temporal trigger replay --where 'outcome.status == "dlq"' --version current
    """
    from harn_temporal.cli.operation_options import intent, version_named
    from harn_temporal.cli.operation_reports import ended, show, unsuccessful
    from harn_temporal.cli.reading import reading
    from harn_temporal.eventlog.log import EventLog
    from harn_temporal.operations.replay import replay as replay_all
    from harn_temporal.operations.targets import select

    selection = _selection(event_id, where, trigger)
    wanted = intent("replay", dry_run=dry_run, rate=rate, filter_text=selection.filter)
    under = version_named(version)

    async def work(log: EventLog) -> tuple[Report, list[str]]:
        report = await replay_all(log, await select(log, selection), wanted, under)
        return await ended(log, report, wait=wait)

    report, unseen = reading(common_options(ctx), work)
    show(report, unseen, as_json=as_json)
    if unsuccessful(report) or (event_id is not None and report.skipped):
        raise typer.Exit(1)


def _selection(event_id: str | None, where: str | None, trigger: str | None) -> Selection:
    if (event_id is None) == (where is None):
        raise UsageError("name either an event or, with --where, an expression that selects some")
    from harn_temporal.operations.targets import Selection
    from harn_temporal.operations.where import Where

    return Selection(event_id, None if where is None else Where(where), trigger)

"""`harn-temporal recover`: envelopes that no dispatch is under way for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from harn_temporal.cli.options import JsonOption, common_options
from harn_temporal.errors import UsageError

if TYPE_CHECKING:
    from harn_temporal.recovery.recover import Recovery
    from harn_temporal.recovery.stranded import StrandedEnvelope


def recover(
    ctx: typer.Context,
    *,
    envelope_age: Annotated[
        str,
        typer.Option(
            "--envelope-age", metavar="AGE", help="Only envelopes that are older: 5m, 2h, 7d"
        ),
    ] = "5m",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what is stranded; one of this or --yes")
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Append what is stranded again, for the pump to take")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Put accepted envelopes that no dispatch is under way for before the pump again.

    An envelope is stranded where the pump read past it: its trigger was unknown then, say. It is
    lost where Temporal has lost its dispatch, which goes on after the attempts that have ended; one
    that was running then runs again. An envelope that the pump has not come to yet needs a running
    worker only, and is left where it is. No Temporal is needed; each run is in the audit topic.

    Example: harn-temporal recover --envelope-age 5m --dry-run
    """
    from harn_temporal.cli.output import print_json
    from harn_temporal.cli.reading import reading
    from harn_temporal.cli.stores import read_manifest
    from harn_temporal.clock import system_clock
    from harn_temporal.durations import parse_duration
    from harn_temporal.operations.audit import operator_name
    from harn_temporal.recovery.recover import recover as run

    if dry_run == yes:
        raise UsageError("say either --dry-run, which only shows what is stranded, or --yes")
    age_ms = parse_duration(envelope_age)
    options = common_options(ctx)
    package = read_manifest(options, load_handlers=False).package
    recovery = reading(
        options,
        lambda log: run(
            log,
            package,
            older_than_ms=age_ms,
            dry_run=dry_run,
            requested_by=operator_name(),
        ),
    )
    now_ms = system_clock()
    if as_json:
        print_json(recovery.to_json(now_ms))
    else:
        _show(recovery, package, envelope_age, now_ms)


def _show(recovery: Recovery, package: str, age: str, now_ms: int) -> None:
    from harn_temporal.cli.output import line
    from harn_temporal.cli.tables import Column, print_table
    from harn_temporal.durations import format_duration

    if not recovery.envelopes:
        line(f"No envelope of package {package} older than {age} is without a dispatch.")
        return
    print_table(
        [
            Column("event"),
            Column("trigger"),
            Column("age", right=True),
            Column("state"),
            Column("envelope", rank=1),
        ],
        [
            [
                envelope.event_id,
                envelope.binding_key,
                format_duration((now_ms - envelope.appended_at_ms) // 1000 * 1000),
                _state(envelope),
                str(envelope.address),
            ]
            for envelope in recovery.envelopes
        ],
    )
    lost = sum(envelope.lost for envelope in recovery.envelopes)
    stranded = sum(envelope.passed for envelope in recovery.envelopes) - lost
    waiting = len(recovery.envelopes) - stranded - lost
    if recovery.dry_run:
        line(
            f"{stranded} stranded, {lost} lost by Temporal, {waiting} waiting for a worker. "
            "Nothing was changed."
        )
    else:
        line(f"{recovery.readmitted} appended again, {waiting} waiting for a worker.")


def _state(envelope: StrandedEnvelope) -> str:
    if envelope.lost:
        return f"lost in attempt {envelope.attempts}" if envelope.attempts else "lost"
    return "stranded" if envelope.passed else "waits for a worker"

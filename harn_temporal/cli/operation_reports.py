"""How commands show what an operation did."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harn_temporal.cli.output import note, print_json, warn

if TYPE_CHECKING:
    from harn_temporal.eventlog.log import EventLog
    from harn_temporal.operations.report import Report

UNSUCCESSFUL = frozenset({"failed", "dlq", "cancelled"})

_DOES = {
    "cancel": "cancelled",
    "replay": "replayed",
    "dlq_replay": "replayed",
    "dlq_purge": "discarded",
}


async def unseen_packages(log: EventLog, report: Report) -> list[str]:
    """Packages that the operation waits for, and of which no worker was seen lately."""
    from harn_temporal.cli.stores import worker_seen

    packages = sorted({item.package for item in report.items if item.package})
    return [package for package in packages if not await worker_seen(log, package)]


async def ended(log: EventLog, report: Report, *, wait: bool) -> tuple[Report, list[str]]:
    """The report of replays, with their outcomes where they are waited for, and who is missing."""
    from harn_temporal.operations.ends import with_outcomes

    unseen = await unseen_packages(log, report)
    if not wait or report.intent.dry_run:
        return report, unseen
    _warn(report, unseen)
    if report.executed:
        note(f"{report.executed} replayed, waiting for their ends. Ctrl-C leaves them to workers.")
    return await with_outcomes(log, report), []


def unsuccessful(report: Report) -> bool:
    return any(item.outcome in UNSUCCESSFUL for item in report.items)


def show(report: Report, unseen: list[str], *, as_json: bool) -> None:
    """The report on stdout, and a warning where no worker is there to act on it."""
    if as_json:
        print_json(report.to_json() | {"worker_seen": not unseen})
    else:
        _print(report)
    _warn(report, unseen)


def _warn(report: Report, unseen: list[str]) -> None:
    if report.executed and unseen:
        names = ", ".join(unseen)
        warn(
            f"no worker of package {names} was seen in the last minute. What was asked for is "
            "kept, and done once one runs: `harn-temporal up`"
        )


def _print(report: Report) -> None:
    from harn_temporal.cli.tables import Column, print_table

    if not report.items:
        note("Nothing matches.")
        return
    columns = [
        Column("event"),
        Column("binding", rank=1),
        Column("was", rank=2),
        Column("now"),
        Column("why", rank=3, cut=True),
    ]
    print_table(
        columns,
        [
            [
                item.target.event_id,
                item.target.binding_key,
                item.target.latest_status,
                item.outcome or ("-" if item.done == "dry_run" else item.done),
                item.reason or "",
            ]
            for item in report.items
        ],
    )
    would = len(report.items) - report.skipped
    done = _DOES[report.intent.operation]
    if report.intent.dry_run:
        note(f"Nothing was done: {would} would be {done}, {report.skipped} left alone.")
    else:
        verb = "to be cancelled" if done == "cancelled" else done
        note(f"{report.executed} {verb}, {report.skipped} left alone. Audit: {report.audit_id}")

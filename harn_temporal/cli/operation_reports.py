"""How commands show what an operation did."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harn_temporal.cli.output import note, print_json, warn

if TYPE_CHECKING:
    from harn_temporal.eventlog.log import EventLog
    from harn_temporal.operations.report import Report

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


def show(
    report: Report, unseen: list[str], *, as_json: bool, more: dict[str, Any] | None = None
) -> None:
    """The report on stdout, and a warning where no worker is there to act on it."""
    if as_json:
        print_json(report.to_json() | {"worker_seen": not unseen} | (more or {}))
    else:
        _print(report)
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
                "-" if item.done == "dry_run" else item.done,
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

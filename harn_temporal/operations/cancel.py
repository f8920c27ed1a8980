"""Cancelling dispatches: a durable request for each, which a worker, ours or Harn's, acts on."""

from __future__ import annotations

from collections.abc import Sequence

from harn_temporal.clock import rfc3339
from harn_temporal.eventlog.cancel_requests import CANCEL_REQUESTED
from harn_temporal.eventlog.log import EventLog
from harn_temporal.eventlog.records import Append
from harn_temporal.eventlog.topics import CANCEL_REQUESTS
from harn_temporal.operations.audit import Intent, audit_id
from harn_temporal.operations.report import Item, Pace, Report, audited
from harn_temporal.operations.targets import Target

BATCH = 200
"""Requests appended in one transaction."""


async def cancel(log: EventLog, targets: Sequence[Target], intent: Intent) -> Report:
    """Ask for the end of each dispatch that has not ended, and was not asked to already."""
    run = audit_id()
    pace = Pace(intent.rate)
    wanted = [target for target in targets if target.progress.cancellable]
    if not intent.dry_run:
        size = BATCH if intent.rate is None else 1
        for start in range(0, len(wanted), size):
            await pace.wait()
            await _request(log, wanted[start : start + size], intent, run)
    return await audited(log, intent, run, [_item(target, intent) for target in targets])


async def _request(log: EventLog, targets: Sequence[Target], intent: Intent, audit_id: str) -> None:
    await log.transact(
        lambda tx: tx.append(
            [
                Append(
                    topic=CANCEL_REQUESTS,
                    kind=CANCEL_REQUESTED,
                    payload={
                        "binding_key": target.binding_key,
                        "event_id": target.event_id,
                        "requested_at": rfc3339(tx.now_ms),
                        "requested_by": intent.requested_by,
                        "audit_id": audit_id,
                    },
                    occurred_at_ms=tx.now_ms,
                )
                for target in targets
            ]
        )
    )


def _item(target: Target, intent: Intent) -> Item:
    progress = target.progress
    if progress.terminal:
        return Item(target.audited(), "skipped", f"it has ended as {progress.status}")
    if progress.cancel_requested:
        return Item(target.audited(), "skipped", "its cancellation was requested before")
    done = "dry_run" if intent.dry_run else "requested"
    return Item(target.audited(), done, package=target.package)

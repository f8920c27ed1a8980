"""What an operation did, target by target, and its pace."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from harn_temporal.eventlog.log import EventLog
from harn_temporal.operations import audit
from harn_temporal.operations.audit import AuditTarget, Intent, Operation


@dataclass(frozen=True, slots=True)
class Item:
    """What became of one target.

    `done` is the operation's word for it (`requested`, `replayed`, `discarded`), or `skipped` with
    the reason, or `dry_run`. `workflow_id` and `dead_letter` are there where they apply.
    """

    target: AuditTarget
    done: str
    reason: str | None = None
    workflow_id: str | None = None
    dead_letter: str | None = None
    outcome: str | None = None
    """How the dispatch ended, where that was waited for."""
    package: str = ""
    """Whose worker it now waits for; empty where for none of ours."""

    def to_json(self, operation: Operation) -> dict[str, Any]:
        """With `id` for dead letters, `workflow_id` and `outcome` for replays."""
        found = {
            "event_id": self.target.event_id,
            "binding_key": self.target.binding_key,
            "latest_status": self.target.latest_status,
            "status": self.done,
            "reason": self.reason,
        }
        if operation in {"dlq_replay", "dlq_purge"}:
            found["id"] = self.dead_letter
        if operation in {"replay", "dlq_replay"}:
            found["workflow_id"] = self.workflow_id
            found["outcome"] = self.outcome
        return found


@dataclass(frozen=True, slots=True)
class Report:
    intent: Intent
    audit_id: str
    items: Sequence[Item]

    @property
    def executed(self) -> int:
        return sum(item.done not in {"skipped", "dry_run"} for item in self.items)

    @property
    def skipped(self) -> int:
        return sum(item.done == "skipped" for item in self.items)

    def to_json(self) -> dict[str, Any]:
        return {
            "operation": self.intent.operation,
            "dry_run": self.intent.dry_run,
            "filter": self.intent.filter,
            "audit_id": self.audit_id,
            "matched_count": len(self.items),
            "executed_count": self.executed,
            "skipped_count": self.skipped,
            "items": [item.to_json(self.intent.operation) for item in self.items],
        }


async def audited(log: EventLog, intent: Intent, audit_id: str, items: Sequence[Item]) -> Report:
    """The report of an operation that has been carried out, written into the audit topic."""
    report = Report(intent, audit_id, tuple(items))
    await log.transact(
        lambda tx: tx.append(
            [
                audit.audit_record(
                    intent,
                    audit_id=audit_id,
                    targets=[item.target for item in items],
                    executed=report.executed,
                    skipped=report.skipped,
                    now_ms=tx.now_ms,
                )
            ]
        )
    )
    return report


class Pace:
    """Lets no more than `rate` pass each second; None lets all pass at once."""

    def __init__(self, rate: float | None) -> None:
        self._interval = None if rate is None else 1 / rate
        self._next = 0.0

    async def wait(self) -> None:
        if self._interval is None:
            return
        loop = asyncio.get_running_loop()
        delay = self._next - loop.time()
        if delay > 0:
            await asyncio.sleep(delay)
        self._next = max(self._next, loop.time()) + self._interval

"""The audit of operations: who did what to which dispatches."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from harn_temporal import ids
from harn_temporal.clock import rfc3339
from harn_temporal.eventlog.records import Append
from harn_temporal.eventlog.topics import OPERATIONS_AUDIT

Operation = Literal["cancel", "replay", "dlq_replay", "dlq_purge", "recover"]


@dataclass(frozen=True, slots=True)
class AuditTarget:
    """A dispatch that an operation was about, and how it stood before."""

    event_id: str
    binding_key: str
    latest_status: str


@dataclass(frozen=True, slots=True)
class Intent:
    """What an operator asks for.

    `filter` is how the targets were chosen, where not by their ids. `rate` is how many are acted
    on each second at most.
    """

    operation: Operation
    dry_run: bool = False
    filter: str | None = None
    requested_by: str | None = None
    rate: float | None = None


def audit_id() -> str:
    return ids.audit_id()


def audit_record(
    intent: Intent,
    *,
    audit_id: str,
    targets: Sequence[AuditTarget],
    executed: int,
    skipped: int,
    now_ms: int,
) -> Append:
    return Append(
        topic=OPERATIONS_AUDIT,
        kind="trigger_operation_audit",
        payload={
            "id": audit_id,
            "operation": intent.operation,
            "dry_run": intent.dry_run,
            "filter": intent.filter,
            "requested_at": rfc3339(now_ms),
            "requested_by": intent.requested_by,
            "matched_count": len(targets),
            "executed_count": executed,
            "skipped_count": skipped,
            "rate_limit_per_second": intent.rate,
            "targets": [
                {
                    "event_id": target.event_id,
                    "binding_key": target.binding_key,
                    "latest_status": target.latest_status,
                }
                for target in targets
            ],
        },
        occurred_at_ms=now_ms,
    )


def operator_name(environ: Mapping[str, str] = os.environ) -> str | None:
    """Who runs this process, as Harn tells it: `USER`, else `LOGNAME`."""
    return environ.get("USER", "").strip() or environ.get("LOGNAME", "").strip() or None

"""Recovery: a stranded envelope is appended again, so that the pump comes to it once more.

A lost dispatch goes on with the attempt that follows those that have ended.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from harn_temporal.durations import format_duration
from harn_temporal.eventlog.log import Append, EventLog, Record, Transaction
from harn_temporal.headers import (
    ACCEPTED_AT_MS,
    IDEMPOTENCY_KEY,
    PROVENANCE_PREV_HASH,
    PROVENANCE_RECORD_HASH,
    PROVENANCE_SCHEMA,
    QUEUE_APPENDED_AT_MS,
    READMITTED_FROM,
)
from harn_temporal.operations.audit import AuditTarget, Intent, audit_id, audit_record
from harn_temporal.recovery.stranded import StrandedEnvelope, stranded_envelopes

_OF_THE_RECORD = frozenset(
    {PROVENANCE_SCHEMA, PROVENANCE_PREV_HASH, PROVENANCE_RECORD_HASH, IDEMPOTENCY_KEY}
)
STRANDED = "stranded"
LOST = "lost"
WAITING = "waiting"


@dataclass(frozen=True, slots=True)
class Recovery:
    """`readmitted` counts what was appended again; with `dry_run` nothing is."""

    envelopes: tuple[StrandedEnvelope, ...]
    readmitted: int
    dry_run: bool
    audit_id: str

    def to_json(self, now_ms: int) -> dict[str, Any]:
        return {
            "dry_run": self.dry_run,
            "audit_id": self.audit_id,
            "matched_count": len(self.envelopes),
            "executed_count": self.readmitted,
            "skipped_count": len(self.envelopes) - self.readmitted,
            "envelopes": [envelope.to_json(now_ms) for envelope in self.envelopes],
        }


async def recover(
    log: EventLog,
    package: str,
    *,
    older_than_ms: int,
    dry_run: bool,
    requested_by: str | None = None,
) -> Recovery:
    """Append the stranded envelopes of `package` again that are older than `older_than_ms`.

    One that the pump has not come to yet is left where it is: it needs no more than a worker. An
    envelope is one transaction, since its event may be large, and recovering it twice does no
    harm: a dispatch is started once. Each run leaves a record in the audit topic, a dry run too.
    """
    found = await log.query(
        lambda reader: stranded_envelopes(reader, package, older_than_ms=older_than_ms)
    )
    readmitted = 0
    for envelope in found:
        if envelope.passed and not dry_run:
            readmitted += await _readmit(log, envelope)
    intent = Intent(
        "recover",
        dry_run=dry_run,
        filter=f"envelope_age >= {format_duration(older_than_ms)}",
        requested_by=requested_by,
    )
    recovery = Recovery(tuple(found), readmitted, dry_run, audit_id())

    def audit(tx: Transaction) -> None:
        targets = [AuditTarget(each.event_id, each.binding_key, _status(each)) for each in found]
        record = audit_record(
            intent,
            audit_id=recovery.audit_id,
            targets=targets,
            executed=readmitted,
            skipped=len(found) - readmitted,
            now_ms=tx.now_ms,
        )
        tx.append([record])

    await log.transact(audit)
    return recovery


def _status(envelope: StrandedEnvelope) -> str:
    if envelope.lost:
        return LOST
    return STRANDED if envelope.passed else WAITING


async def _readmit(log: EventLog, envelope: StrandedEnvelope) -> bool:
    def work(tx: Transaction) -> bool:
        now = tx.dispatches.get(envelope.workflow_id)
        if now is None or now.envelope_id != envelope.address.event_id:
            return False  # somebody else has just recovered it
        began = now.admitted_at_ms or now.started_attempt or now.ended_attempt or now.outcome
        if began and not now.lost:
            return False
        [record] = tx.read(envelope.address.topic, after=envelope.address.event_id - 1, limit=1)
        return tx.append([_copy(record, tx.now_ms)], key=f"recover/{envelope.address}").fresh

    return await log.transact(work)


def _copy(record: Record, now_ms: int) -> Append:
    """The envelope as it was; what belongs to the record as such is made anew."""
    kept = {name: value for name, value in record.headers.items() if name not in _OF_THE_RECORD}
    kept.setdefault(ACCEPTED_AT_MS, str(record.occurred_at_ms))
    kept[QUEUE_APPENDED_AT_MS] = str(now_ms)
    kept[READMITTED_FROM] = f"{record.topic}/{record.event_id}"
    return Append(record.topic, record.kind, record.payload, kept, now_ms)

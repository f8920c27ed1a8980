"""Stranded envelopes: accepted, and yet no dispatch of them is under way or has ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from harn_temporal.clock import rfc3339
from harn_temporal.contracts import EventAddress
from harn_temporal.eventlog.dispatches import FOREVER_MS, StoredDispatch
from harn_temporal.eventlog.log import EventLog, Reader, Transaction
from harn_temporal.eventlog.records import Record
from harn_temporal.headers import ACCEPTED_AT_MS
from harn_temporal.naming import pump_consumer
from harn_temporal.pump_records import PumpRecords

STARTUP_AGE_MS = 5 * 60 * 1000
"""Younger envelopes are what a pump has just not come to yet."""

MOST = 10_000
"""Envelopes that are listed."""


@dataclass(frozen=True, slots=True)
class StrandedEnvelope:
    """An envelope without a dispatch. `address` is its place in the log.

    `passed` says that the pump has read past it, and made no dispatch of it: it is stranded until
    it is recovered. The others are dispatched by themselves as soon as a worker pumps. One that is
    `lost` had a dispatch, which Temporal does not know; `attempts` of it had begun.
    """

    workflow_id: str
    address: EventAddress
    event_id: str
    trigger_id: str
    binding_key: str
    binding_version: int | None
    provider: str
    kind: str
    tenant_id: str | None
    received_at_ms: int
    appended_at_ms: int
    passed: bool
    lost: bool = False
    attempts: int = 0

    def to_json(self, now_ms: int) -> dict[str, Any]:
        """As in `queue ls`: `age` in milliseconds since it was appended. More keys are ours."""
        return {
            "inbox_offset": self.address.event_id,
            "topic": self.address.topic,
            "event_id": self.event_id,
            "trigger_id": self.trigger_id,
            "binding_key": self.binding_key,
            "binding_version": self.binding_version,
            "provider": self.provider,
            "kind": self.kind,
            "tenant_id": self.tenant_id,
            "received_at": rfc3339(self.received_at_ms),
            "age": max(0, now_ms - self.appended_at_ms),
            "passed_by_pump": self.passed,
            "lost": self.lost,
            "attempts": self.attempts,
        }


def stranded_envelopes(
    reader: Reader, package: str, *, older_than_ms: int = 0, limit: int = MOST
) -> list[StrandedEnvelope]:
    """Envelopes of `package` that no dispatch was started for, or a lost one; the oldest first."""
    consumer_id = pump_consumer(package)
    cursors: dict[str, int] = {}
    found = []
    until_ms = reader.now_ms - older_than_ms if older_than_ms else FOREVER_MS
    waiting = reader.dispatches.waiting(package, until_ms=until_ms, limit=limit)
    lost = reader.dispatches.lost(package, until_ms=until_ms, limit=limit)
    for dispatch in sorted(waiting + lost, key=_age_and_place)[:limit]:
        topic = dispatch.envelope_topic
        if topic not in cursors:
            cursors[topic] = reader.cursor(topic, consumer_id)
        records = reader.read(topic, after=dispatch.envelope_id - 1, limit=1)
        if records and records[0].event_id == dispatch.envelope_id:
            found.append(
                _described(records[0], dispatch, passed=records[0].event_id <= cursors[topic])
            )
    return found


@dataclass(frozen=True, slots=True)
class StrandedCount:
    passed: int = 0
    waiting: int = 0

    @property
    def total(self) -> int:
        return self.passed + self.waiting


async def note_stranded(
    log: EventLog, package: str, *, max_outstanding: int, older_than_ms: int = STARTUP_AGE_MS
) -> StrandedCount:
    """Count what is stranded when a worker starts, and say so in the log where there is any."""
    found = await log.query(lambda reader: _count(reader, package, older_than_ms))
    if found.total:

        def work(tx: Transaction) -> None:
            records = PumpRecords(package, max_outstanding=max_outstanding, now_ms=tx.now_ms)
            tx.append([records.stranded(found.total)])

        await log.transact(work)
    return found


def _count(reader: Reader, package: str, older_than_ms: int) -> StrandedCount:
    """Without a look at the envelopes, which may be many and large."""
    until_ms = reader.now_ms - older_than_ms
    dispatches = reader.dispatches.waiting(package, until_ms=until_ms, limit=MOST)
    dispatches += reader.dispatches.lost(package, until_ms=until_ms, limit=MOST)
    consumer_id = pump_consumer(package)
    cursors = {
        topic: reader.cursor(topic, consumer_id)
        for topic in {dispatch.envelope_topic for dispatch in dispatches}
    }
    passed = sum(each.envelope_id <= cursors[each.envelope_topic] for each in dispatches)
    return StrandedCount(passed, len(dispatches) - passed)


def _age_and_place(dispatch: StoredDispatch) -> tuple[int, str, int]:
    return dispatch.enveloped_at_ms, dispatch.envelope_topic, dispatch.envelope_id


def _described(record: Record, dispatch: StoredDispatch, *, passed: bool) -> StrandedEnvelope:
    """From the headers, which ingestion wrote: the event may be large."""
    headers = record.headers
    accepted = headers.get(ACCEPTED_AT_MS, "")
    binding_key = headers.get("binding_key", "")
    _, mark, version = binding_key.rpartition("@v")
    return StrandedEnvelope(
        workflow_id=dispatch.workflow_id,
        address=EventAddress(topic=record.topic, event_id=record.event_id),
        event_id=headers.get("event_id", ""),
        trigger_id=headers.get("trigger_id", ""),
        binding_key=binding_key,
        binding_version=int(version) if mark and _is_number(version) else None,
        provider=headers.get("provider", ""),
        kind=headers.get("kind", ""),
        tenant_id=headers.get("tenant_id"),
        received_at_ms=int(accepted) if _is_number(accepted) else record.occurred_at_ms,
        appended_at_ms=record.occurred_at_ms,
        passed=passed,
        lost=dispatch.lost,
        attempts=dispatch.started_attempt,
    )


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal()

"""What becomes of dead letters: replayed, given up, or taken out as fixtures."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from harn_temporal.bindings import Binding
from harn_temporal.clock import rfc3339
from harn_temporal.dispatch_records import closed
from harn_temporal.dispatch_records.dead_letters import history_of
from harn_temporal.errors import EventError, StoreError
from harn_temporal.eventlog.dead_letters import PENDING, StoredDeadLetter
from harn_temporal.eventlog.log import EventLog, Reader, Transaction
from harn_temporal.eventlog.topics import TRIGGER_DLQ
from harn_temporal.events import TriggerEvent
from harn_temporal.operations.audit import AuditTarget, Intent, audit_id
from harn_temporal.operations.replay import (
    Bindings,
    Unresolved,
    Version,
    add_replay,
    replay_under_way,
)
from harn_temporal.operations.report import Item, Pace, Report, audited

FIXTURE = "harn.dlq.fixture.v1"

PAGE = 500
"""Dead letters looked at in one query."""


async def replay_letters(
    log: EventLog, letters: Sequence[StoredDeadLetter], intent: Intent, version: Version
) -> Report:
    """Replay the event of each pending dead letter that is not being replayed already.

    A dead letter is resolved by the dispatch that succeeds; one that dies again stays pending.
    """
    run = audit_id()
    pace = Pace(intent.rate)
    bindings = Bindings(log, version)
    items = []
    for start in range(0, len(letters), PAGE):
        found = [
            (letter, await bindings.find(letter.trigger_id, letter.version))
            for letter in letters[start : start + PAGE]
        ]
        hindrances = await log.query(functools.partial(_hindrances, found))
        for (letter, binding), hindrance in zip(found, hindrances, strict=True):
            if hindrance is not None or isinstance(binding, Unresolved):
                items.append(_item(letter, "skipped", hindrance))
            elif intent.dry_run:
                items.append(_item(letter, "dry_run"))
            else:
                await pace.wait()
                items.append(await _replay(log, letter, binding))
    return await audited(log, intent, run, items)


async def purge_letters(
    log: EventLog, letters: Sequence[StoredDeadLetter], intent: Intent
) -> Report:
    """Give up each pending dead letter: its state is `discarded`, and its record stays."""
    run = audit_id()
    pace = Pace(intent.rate)
    items = []
    for letter in letters:
        if letter.state != PENDING:
            items.append(_item(letter, "skipped", f"it is {letter.state}"))
        elif intent.dry_run:
            items.append(_item(letter, "dry_run"))
        else:
            await pace.wait()
            items.append(await _discard(log, letter))
    return await audited(log, intent, run, items)


async def fixture(log: EventLog, letter: StoredDeadLetter) -> dict[str, Any]:
    """A dead letter in the shape that Harn exports, `harn.dlq.fixture.v1`."""
    entry = await log.query(lambda reader: _entry(reader, letter))
    event = entry.get("event")
    event = event if isinstance(event, dict) else {}
    history = [
        {name: each.get(name) for name in ("attempt", "at", "status", "error")}
        for each in history_of(entry)
        if isinstance(each, dict)
    ]
    failed_at = history[-1]["at"] if history else None
    return {
        "fixture_schema": FIXTURE,
        "entry": {
            "id": letter.id,
            "event_id": letter.event_id,
            "trigger_id": letter.trigger_id,
            "binding_id": letter.trigger_id,
            "binding_key": letter.binding_key,
            "binding_version": letter.version,
            "provider": letter.provider,
            "event_kind": letter.kind,
            "failed_at": failed_at or rfc3339(letter.moved_at_ms),
            "failed_at_ms": letter.moved_at_ms,
            "last_error": letter.error,
            "error_class": letter.error_class,
            "retry_count": len(history),
            "state": letter.state,
            "headers": event.get("headers", {}),
            "payload": event.get("provider_payload", event),
            "event": event,
            "attempt_history": history,
            "predicate_trace": [],
        },
    }


async def _replay(log: EventLog, letter: StoredDeadLetter, binding: Binding) -> Item:
    entry = await log.query(lambda reader: _entry(reader, letter))
    try:
        event = TriggerEvent.from_json(entry.get("event"))
    except EventError as error:
        return _item(letter, "skipped", f"its event cannot be read: {error}")
    event_json = event.to_json()

    def work(tx: Transaction) -> Item:
        hindrance = _hindrance(tx, tx.dead_letters.get(letter.id) or letter, binding)
        if hindrance is not None:
            return _item(letter, "skipped", hindrance)
        workflow_id = add_replay(tx, binding, event, event_json)
        return replace(_item(letter, "replayed"), workflow_id=workflow_id, package=binding.package)

    return await log.transact(work)


def _hindrances(
    letters: Sequence[tuple[StoredDeadLetter, Binding | Unresolved]], reader: Reader
) -> list[str | None]:
    return [_hindrance(reader, letter, binding) for letter, binding in letters]


def _hindrance(
    reader: Reader, letter: StoredDeadLetter, binding: Binding | Unresolved
) -> str | None:
    """Why a dead letter is not replayed now; None where it can be."""
    if letter.state != PENDING:
        return f"it is {letter.state}"
    if isinstance(binding, Unresolved):
        return binding.reason
    under_way = replay_under_way(reader, binding, letter.event_id)
    return None if under_way is None else f"{under_way} is under way"


async def _discard(log: EventLog, letter: StoredDeadLetter) -> Item:
    def work(tx: Transaction) -> Item:
        latest = tx.dead_letters.get(letter.id)
        if latest is None or latest.state != PENDING:
            return _item(letter, "skipped", "something became of it meanwhile")
        tx.append([closed(_entry(tx, latest), "discarded", now_ms=tx.now_ms)])
        return _item(letter, "discarded")

    return await log.transact(work)


def _entry(reader: Reader, letter: StoredDeadLetter) -> dict[str, Any]:
    records = reader.read(TRIGGER_DLQ, letter.record_id - 1, 1)
    if not records or records[0].event_id != letter.record_id:
        raise StoreError(f"record {letter.record_id} of {TRIGGER_DLQ} is gone")
    payload: dict[str, Any] = records[0].payload
    return payload


def _item(letter: StoredDeadLetter, done: str, reason: str | None = None) -> Item:
    status = "dlq" if letter.state == PENDING else letter.state
    audited_as = AuditTarget(letter.event_id, letter.binding_key, status)
    return Item(audited_as, done, reason, dead_letter=letter.id)

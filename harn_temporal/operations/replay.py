"""Replaying: the recorded event is put before the dispatcher again, as a dispatch of its own.

No dedupe key is claimed and none is in the way. The number of a replay is settled in the
transaction that appends its envelope, so that two who replay at once make two replays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import ValidationError

from harn_temporal import headers
from harn_temporal.bindings import Binding
from harn_temporal.envelope_records import event_records
from harn_temporal.errors import StoreError
from harn_temporal.event_address import event_in
from harn_temporal.eventlog.log import EventLog, Reader, Transaction
from harn_temporal.events import TriggerEvent
from harn_temporal.naming import dispatch_workflow_id
from harn_temporal.operations.audit import Intent, audit_id
from harn_temporal.operations.report import Item, Pace, Report, audited
from harn_temporal.operations.targets import Target

Version = Literal["recorded", "current"]


@dataclass(frozen=True, slots=True)
class Unresolved:
    """No binding of ours can take the event, and why."""

    reason: str


async def replay(
    log: EventLog, targets: Sequence[Target], intent: Intent, version: Version
) -> Report:
    """Replay each target, one transaction each. What no binding can take is skipped."""
    run = audit_id()
    pace = Pace(intent.rate)
    items = []
    for target in targets:
        binding = await resolve(
            log, target.trigger_id, target.version, package=target.package, version=version
        )
        if isinstance(binding, Unresolved):
            items.append(Item(target.audited(), "skipped", binding.reason))
        elif intent.dry_run:
            items.append(Item(target.audited(), "dry_run"))
        else:
            await pace.wait()
            items.append(await _replay(log, target, binding))
    return await audited(log, intent, run, items)


async def _replay(log: EventLog, target: Target, binding: Binding) -> Item:
    address = target.address
    records = await log.read(address.topic, address.event_id - 1, 1)
    if not records or records[0].event_id != address.event_id:
        return Item(target.audited(), "skipped", "its record is gone")
    try:
        event = event_in(records[0])
    except StoreError as error:
        return Item(target.audited(), "skipped", str(error))
    traceparent = records[0].headers.get(headers.TRACEPARENT)
    workflow_id = await append_replay(log, binding, event, traceparent=traceparent)
    return Item(target.audited(), "replayed", workflow_id=workflow_id, package=binding.package)


async def append_replay(
    log: EventLog, binding: Binding, event: TriggerEvent, *, traceparent: str | None = None
) -> str:
    """Append the envelope of the next replay; returns the id of its workflow to be."""
    event_json = event.to_json()

    def work(tx: Transaction) -> str:
        number = next_replay(tx, binding, event.id)
        tx.append(
            event_records(
                binding,
                event,
                event_json,
                package=binding.package,
                now_ms=tx.now_ms,
                replay=number,
                traceparent=traceparent,
            )
        )
        return dispatch_workflow_id(binding.package, binding.trigger_id, event.id, number)

    return await log.transact(work)


def next_replay(reader: Reader, binding: Binding, event_id: str) -> int:
    """The first number that no replay of this event and trigger has."""
    number = 1
    while reader.dispatches.get(
        dispatch_workflow_id(binding.package, binding.trigger_id, event_id, number)
    ):
        number += 1
    return number


async def resolve(
    log: EventLog, trigger_id: str, recorded: int | None, *, package: str, version: Version
) -> Binding | Unresolved:
    """The binding that a replay is dispatched under. With `package` empty any of ours will do."""

    def look_up(reader: Reader) -> Binding | Unresolved:
        number = recorded if version == "recorded" else _current(reader, trigger_id, package)
        if number is None and version == "current":
            return Unresolved(
                f"trigger {trigger_id} is not in use now; start its worker, or replay it with "
                "--version recorded"
            )
        definition = None if number is None else reader.bindings.definition(trigger_id, number)
        if definition is None:
            name = trigger_id if number is None else f"{trigger_id}@v{number}"
            return Unresolved(
                f"the store has no definition of {name}, which Harn registered; "
                "try --version current"
            )
        try:
            return Binding.model_validate({**definition, "version": number})
        except ValidationError as error:
            return Unresolved(f"the definition of {trigger_id}@v{number} is wrong: {error}")

    return await log.query(look_up)


def _current(reader: Reader, trigger_id: str, package: str) -> int | None:
    versions = [
        state.version
        for state in reader.bindings.states()
        if state.trigger_id == trigger_id
        and state.state == "active"
        and state.package
        and package in {"", state.package}
    ]
    return max(versions, default=None)

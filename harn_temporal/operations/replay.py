"""Replaying: the recorded event is put before the dispatcher again, as a dispatch of its own.

No dedupe key is claimed and none is in the way. The number of a replay is settled in the
transaction that appends its envelope, so that two who replay at once make two replays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

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
    bindings = Bindings(log, version)
    items = []
    for target in targets:
        binding = await bindings.find(target.trigger_id, target.version, target.package)
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
    return await log.transact(
        lambda tx: add_replay(tx, binding, event, event_json, traceparent=traceparent)
    )


def add_replay(
    tx: Transaction,
    binding: Binding,
    event: TriggerEvent,
    event_json: dict[str, Any],
    *,
    traceparent: str | None = None,
) -> str:
    """As `append_replay`, in a transaction that also does something else."""
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


def replay_under_way(reader: Reader, binding: Binding, event_id: str) -> str | None:
    """The workflow of the last replay of an event, where that has not ended."""
    last = next_replay(reader, binding, event_id) - 1
    if last == 0:
        return None
    workflow_id = dispatch_workflow_id(binding.package, binding.trigger_id, event_id, last)
    return workflow_id if reader.inbox.outcome(workflow_id) is None else None


def next_replay(reader: Reader, binding: Binding, event_id: str) -> int:
    """The first number that no replay of this event and trigger has."""
    number = 1
    while reader.dispatches.get(
        dispatch_workflow_id(binding.package, binding.trigger_id, event_id, number)
    ):
        number += 1
    return number


class Bindings:
    """The bindings that replays are dispatched under, each looked up once in an operation."""

    def __init__(self, log: EventLog, version: Version) -> None:
        self._log = log
        self._version = version
        self._known: dict[tuple[str, int | None, str], Binding | Unresolved] = {}

    async def find(
        self, trigger_id: str, recorded: int | None, package: str = ""
    ) -> Binding | Unresolved:
        """With `package` empty any of ours will do."""
        wanted = trigger_id, recorded, package
        if wanted not in self._known:
            self._known[wanted] = await self._log.query(
                lambda reader: self._look_up(reader, *wanted)
            )
        return self._known[wanted]

    def _look_up(
        self, reader: Reader, trigger_id: str, recorded: int | None, package: str
    ) -> Binding | Unresolved:
        number = recorded if self._version == "recorded" else _current(reader, trigger_id, package)
        if number is None and self._version == "current":
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

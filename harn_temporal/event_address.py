"""From the address of an envelope to the event in it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from harn_temporal.contracts import DispatchOutcome, DispatchRequest, EventAddress
from harn_temporal.errors import EventError, StoreError
from harn_temporal.eventlog.log import EventLog, Reader
from harn_temporal.eventlog.records import Record
from harn_temporal.events import TriggerEvent
from harn_temporal.gates.gathering import batch_members


def address_of(record: Record) -> EventAddress:
    return EventAddress(topic=record.topic, event_id=record.event_id)


def event_in(record: Record) -> TriggerEvent:
    """The event of an `event_ingested` record. Raises StoreError where it holds none.

    Harn appends an event by itself, without trigger and version around it, where it leaves the
    choice of the bindings to the dispatcher.
    """
    payload: Any = record.payload
    inner = payload.get("event", payload) if isinstance(payload, dict) else payload
    try:
        return TriggerEvent.from_json(inner)
    except EventError as error:
        raise StoreError(
            f"record {record.event_id} of topic {record.topic} holds no event: {error}"
        ) from error


async def load_event(log: EventLog, request: DispatchRequest) -> TriggerEvent:
    """The event of a request: what the request carries, else what lies at its address.

    Raises StoreError where nothing lies there, or another event.
    """
    if request.event is not None:
        return request.event
    return await load_event_at(log, request.address, request.event_id)


async def load_event_at(log: EventLog, address: EventAddress, event_id: str) -> TriggerEvent:
    """The event `event_id`, whose envelope lies at `address`. Raises StoreError as `load_event`."""
    found = await log.read(address.topic, after=address.event_id - 1, limit=1)
    if not found or found[0].event_id != address.event_id:
        raise StoreError(
            f"topic {address.topic} has no record {address.event_id}, where the envelope of event "
            f"{event_id} should be; was the store replaced or cut?"
        )
    # Of a large event the event loop must not see anything.
    event = await asyncio.to_thread(event_in, found[0])
    if event.id != event_id:
        raise StoreError(
            f"record {address.event_id} of topic {address.topic} is event {event.id}, not "
            f"{event_id}; was the store replaced?"
        )
    return event


async def with_result(log: EventLog, outcome: DispatchOutcome) -> DispatchOutcome:
    """`outcome` with its result, which lies in the log where it is large.

    Raises StoreError where no record with a result lies at the address.
    """
    address = outcome.result_address
    if address is None:
        return outcome
    found = await log.read(address.topic, after=address.event_id - 1, limit=1)
    if found and found[0].event_id == address.event_id:
        payload: Any = await asyncio.to_thread(lambda: found[0].payload)
        if isinstance(payload, dict) and "result" in payload:
            return outcome.model_copy(update={"result": payload["result"]})
    raise StoreError(
        f"record {address.event_id} of topic {address.topic}, which should hold the result of "
        f"{outcome.binding_key} for event {outcome.event_id}, does not; was the store replaced?"
    )


async def with_event(log: EventLog, request: DispatchRequest) -> DispatchRequest:
    """`request` carrying its event, as `dispatch_records` needs it. Raises as `load_event`.

    The event of a batch carries all its members.
    """
    if request.event is None:
        request = request.model_copy(update={"event": await load_event(log, request)})
    if request.batch is None:
        return request
    members = await _members(log, request.batch)
    event = await asyncio.to_thread(_batch_event, request, members)
    return request.model_copy(update={"event": event})


async def _members(log: EventLog, batch: EventAddress) -> list[Record]:
    def find(reader: Reader) -> list[Record]:
        found: list[Record] = []
        for member in batch_members(reader, batch):
            address = member.address
            assert address is not None  # a dispatch names where its event lies
            found += reader.read(address.topic, after=address.event_id - 1, limit=1)
        return found

    return await log.query(find)


def _batch_event(request: DispatchRequest, members: Sequence[Record]) -> TriggerEvent:
    """A member that is itself a batch, as in a replay of one, stands for its members."""
    assert request.event is not None  # it was loaded
    batch: list[dict[str, Any]] = []
    for record in members:
        event = event_in(record).to_json()
        batch += event.get("batch") or [event]
    return request.event.model_copy(update={"batch": batch})

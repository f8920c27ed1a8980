"""Gates that make one of several: debounce keeps the last, batch keeps all.

Both gather from a first arrival until a time that is due. Who arrives at that time or later
belongs to what comes next, even where nobody was there to begin what was due.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count

from harn_temporal.contracts import EventAddress
from harn_temporal.errors import StoreError
from harn_temporal.eventlog.gate_tables import StoredGate, StoredWaiter
from harn_temporal.eventlog.log import Reader, Transaction
from harn_temporal.eventlog.records import Append, Record
from harn_temporal.gates.decisions import Asker, Decision, Granted, Skip, Wait, Wake
from harn_temporal.gates.identity import GateKey
from harn_temporal.gates.models import Batch, Debounce
from harn_temporal.gates.records import ABANDONED, Place, place_of
from harn_temporal.headers import GATE_ID, HOLDER
from harn_temporal.naming import job_of


@dataclass(frozen=True, slots=True)
class Member:
    """An event of a batch. `address` is where its envelope lies."""

    holder: str
    event_id: str
    address: EventAddress | None


def admit_debounce(tx: Transaction, gate: Debounce, key: GateKey, asker: Asker) -> Decision:
    place, found = place_of(key), tx.gates.find("debounce", key.gate_id)
    if tx.written(_selected_key(place, asker.holder)):
        return Granted()
    latest = next(iter(tx.gates.waiters(found.gate, 1)), None) if found else None
    due = found is not None and latest is not None and tx.now_ms >= found.due_at_ms
    if latest is not None and latest.holder == asker.holder:
        assert found is not None  # it waits there
        if not due:
            return _wait(tx, place, found.due_at_ms, 1)
        _select(tx, place, latest)
        return Granted()
    seen_key = place.key(asker.holder, "seen")
    seen = tx.written(seen_key)
    if seen:
        return Skip(detail={"gate": place.name, "reason": _why_gone(tx, place, seen[0])})
    first_at_ms = tx.now_ms if found is None or latest is None or due else found.first_at_ms
    if due and latest is not None:
        _select(tx, place, latest)
    due_at_ms = tx.now_ms + gate.period_ms
    if gate.max_wait_ms is not None:
        due_at_ms = min(due_at_ms, first_at_ms + gate.max_wait_ms)
    times = {"first_at_ms": first_at_ms, "due_at_ms": due_at_ms}
    record = place.record(
        "debounce_seen", asker.holder, asker.permit_id, {"token": asker.permit_id, **times}
    )
    tx.append([record], key=seen_key)
    wakes = () if latest is None else (place.wake(latest.holder, granted=due),)
    return _wait(tx, place, due_at_ms, 1, wakes)


def admit_batch(tx: Transaction, gate: Batch, key: GateKey, asker: Asker) -> Decision:
    """The first member goes on, for all; the others are told where theirs went.

    A job that went on for all and is delivered again goes on for the same ones: the others are
    acked, so nobody else would handle them.
    """
    place, found = place_of(key), tx.gates.find("batch", key.gate_id)
    mine = tx.written(_member_key(place, asker.holder))
    if mine:
        return _asked_again(tx, place, found, mine[0], asker.holder)
    batch_id, led = _begun_by(tx, place, asker)
    if led is not None:
        return _granted(led)
    wakes: tuple[Wake, ...] = ()
    if found is not None and found.waiting and tx.now_ms >= found.due_at_ms:
        wakes = _dispatch(tx, place, found)[1]
        found = None
    gathering = found is not None and found.waiting > 0
    first_at_ms = found.first_at_ms if found and gathering else tx.now_ms
    due_at_ms = found.due_at_ms if found and gathering else tx.now_ms + gate.timeout_ms
    enqueued = {
        "token": asker.permit_id,
        "size": gate.size,
        "batch": found.batch_id if found and gathering else batch_id,
        "first_at_ms": first_at_ms,
        "due_at_ms": due_at_ms,
        "event_id": asker.event_id,
        "address": None if asker.address is None else asker.address.model_dump(),
    }
    record = place.record("batch_enqueued", asker.holder, asker.permit_id, enqueued)
    written = tx.append([record], key=_member_key(place, asker.holder)).records
    found = tx.gates.find("batch", key.gate_id)
    assert found is not None  # the record made it
    if found.waiting < gate.size:
        return _wait(tx, place, due_at_ms, found.waiting, wakes)
    dispatched, more = _dispatch(tx, place, found)
    return _fate(place, dispatched, written[0], asker.holder, (*wakes, *more))


def batch_members(reader: Reader, batch: EventAddress) -> list[Member]:
    """The members of the batch that a `batch_dispatched` record names, the root first."""
    dispatched = _one(reader, batch.topic, batch.event_id)
    members = []
    for event_id in dispatched.payload["members"]:
        enqueued = _one(reader, batch.topic, event_id)
        address = enqueued.payload["address"]
        members.append(
            Member(
                enqueued.headers[HOLDER],
                enqueued.payload["event_id"],
                None if address is None else EventAddress.model_validate(address),
            )
        )
    return members


def _begun_by(tx: Transaction, place: Place, asker: Asker) -> tuple[str, Record | None]:
    """The id of the batch that the asker may begin, or the one that its job went on for before.

    Batches are called after the job that began them. One that left before its batch went on
    finds the name taken, and begins another.
    """
    job = job_of(asker.holder)
    if job is None:
        return asker.permit_id, None
    for number in count(1):
        name = f"{job}/{number}"
        written = tx.written(_dispatched_key(place, name))
        if not written:
            return name, None
        if job_of(written[0].headers[HOLDER]) == job:
            return name, written[0]
    raise AssertionError  # numbers have no end


def _asked_again(
    tx: Transaction, place: Place, found: StoredGate | None, mine: Record, holder: str
) -> Decision:
    written = tx.written(_dispatched_key(place, mine.payload["batch"]))
    if written:
        return _fate(place, written[0], mine, holder, _told_by_last(place, written[0], mine))
    if found is None or tx.gates.waiter(found.gate, holder) is None:
        return Skip(detail={"gate": place.name, "reason": "it left its batch"})
    if tx.now_ms < found.due_at_ms:
        return _wait(tx, place, found.due_at_ms, found.waiting)
    dispatched, wakes = _dispatch(tx, place, found)
    return _fate(place, dispatched, mine, holder, wakes)


def _told_by_last(place: Place, dispatched: Record, mine: Record) -> tuple[Wake, ...]:
    """The root once more, by who made the batch full and may have died before it told anybody."""
    if mine.event_id != dispatched.payload["members"][-1]:
        return ()
    return (place.wake(dispatched.headers[HOLDER], granted=True),)


def _fate(
    place: Place, dispatched: Record, mine: Record, holder: str, wakes: tuple[Wake, ...]
) -> Decision:
    """What a batch that goes on means for a member; the member itself needs no signal."""
    others = tuple(each for each in wakes if each.holder != holder)
    payload = dispatched.payload
    if mine.event_id not in payload["members"]:
        return Skip(detail={"gate": place.name, "reason": "it left its batch"}, wakes=others)
    root = dispatched.headers[HOLDER]
    if root == holder or job_of(root) == job_of(holder) is not None:
        return _granted(dispatched, others)
    detail: dict[str, str | int | None] = {
        "gate": place.name,
        "merged_into": root,
        "merged_into_event_id": payload["root_event_id"],
        "count": payload["count"],
    }
    return Skip(detail=detail, wakes=others)


def _granted(dispatched: Record, wakes: tuple[Wake, ...] = ()) -> Granted:
    address = EventAddress(topic=dispatched.topic, event_id=dispatched.event_id)
    return Granted(batch=address, count=dispatched.payload["count"], wakes=wakes)


def _dispatch(tx: Transaction, place: Place, gate: StoredGate) -> tuple[Record, tuple[Wake, ...]]:
    """Let what was gathered go on; the root is signalled first."""
    members = tx.gates.waiters(gate.gate, gate.waiting)
    root = members[0]
    first = _one(tx, place.topic, root.seq)
    dispatched = place.record(
        "batch_dispatched",
        root.holder,
        root.permit_id,
        {
            "count": len(members),
            "batch": gate.batch_id,
            "root_event_id": first.payload["event_id"],
            "members": [each.seq for each in members],
        },
    )
    key = _dispatched_key(place, gate.batch_id)
    written = tx.append([dispatched], key=key).records[0]
    wakes = tuple(place.wake(each.holder, granted=each is root) for each in members)
    return written, wakes


def _why_gone(reader: Reader, place: Place, seen: Record) -> str:
    """Why an event that debounce kept waits no longer: what the next record of its gate says."""
    after = seen.event_id
    while page := reader.read(place.topic, after=after, limit=100):
        for record in page:
            if record.headers.get(GATE_ID) == place.gate_id:
                left = record.kind == ABANDONED
                return str(record.payload["reason"]) if left else "a later event took its place"
        after = page[-1].event_id
    raise StoreError(f"topic {place.topic} does not say what became of record {seen.event_id}")


def _select(tx: Transaction, place: Place, latest: StoredWaiter) -> None:
    selected: Append = place.record(
        "debounce_selected", latest.holder, latest.permit_id, {"token": latest.permit_id}
    )
    tx.append([selected], key=_selected_key(place, latest.holder))


def _wait(
    tx: Transaction, place: Place, until_ms: int, waiting: int, wakes: tuple[Wake, ...] = ()
) -> Wait:
    return Wait(
        kind=place.kind,
        gate=place.name,
        until_ms=until_ms,
        now_ms=tx.now_ms,
        waiting=waiting,
        wakes=wakes,
    )


def _selected_key(place: Place, holder: str) -> str:
    return place.key(holder, "selected")


def _member_key(place: Place, holder: str) -> str:
    return place.key(holder, "enqueued")


def _dispatched_key(place: Place, batch_id: str) -> str:
    return place.key(batch_id, "dispatched")


def _one(reader: Reader, topic: str, event_id: int) -> Record:
    found = reader.read(topic, after=event_id - 1, limit=1)
    if not found or found[0].event_id != event_id:
        raise StoreError(f"record {event_id} of topic {topic} is not in the log")
    return found[0]

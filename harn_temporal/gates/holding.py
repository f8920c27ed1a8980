"""Gates that are held: concurrency, where others wait for their turn, and singleton, where not.

While anyone waits, every permit is held: whatever frees one grants it in the same transaction.
"""

from __future__ import annotations

from harn_temporal.canonical import clean_text
from harn_temporal.eventlog.gate_tables import StoredGate, StoredPermit, StoredWaiter
from harn_temporal.eventlog.log import Transaction
from harn_temporal.eventlog.records import Append
from harn_temporal.gates.decisions import Asker, Decision, Granted, Permit, Skip, Wait, Wake
from harn_temporal.gates.identity import GateKey
from harn_temporal.gates.models import Concurrency
from harn_temporal.gates.records import ABANDONED, RENEWED, Place, place_of
from harn_temporal.naming import job_of

RECHECK_MS = 60_000
"""After so long a waiter looks by itself, should its signal be lost, or a holder be gone."""

FAR_RECHECK_MS = 600_000
"""The same for who is far behind."""

POSITION_LIMIT = 200
"""Of places that are counted: who is further behind is told how many wait in all."""

LOOKED_AT = 16
"""Permits of a gate that are looked at for one that is over."""

_SUPERSEDED = "superseded"


def admit_concurrency(tx: Transaction, gate: Concurrency, key: GateKey, asker: Asker) -> Decision:
    """A permit, or a place among those that wait, by rank and then by arrival."""
    place = place_of(key)
    found = _found(tx, place, asker.holder)
    held = None if found is None else tx.gates.permit(found.gate, asker.holder)
    if held is not None:
        return Granted(permit=_kept(tx, place, held, asker))
    mine = None if found is None else tx.gates.waiter(found.gate, asker.holder)
    arrived_at_ms = tx.now_ms if asker.arrived_at_ms is None else asker.arrived_at_ms
    new = mine is None
    if mine is None:
        mine = StoredWaiter(
            0, asker.holder, asker.permit_id, asker.rank, arrived_at_ms, 2**62, 0, asker.ttl_ms
        )
    batch, free = _expire(tx, place, found, gate.max)
    waiting = [] if found is None or not free else tx.gates.waiters(found.gate, free)
    chosen = sorted([*waiting, mine] if new else waiting, key=_standing)[:free]
    batch += [_acquired(tx, place, each, gate.max) for each in chosen]
    granted = any(each.holder == asker.holder for each in chosen)
    if new and not granted:
        batch.append(_waiting(place, mine, gate.max))
    tx.append(batch)
    wakes = tuple(
        place.wake(each.holder, granted=True) for each in chosen if each.holder != asker.holder
    )
    if granted:
        expires_at_ms = tx.now_ms + mine.ttl_ms
        permit = place.permit(mine.permit_id, mine.arrived_at_ms, expires_at_ms)
        return Granted(permit=permit, wakes=wakes)
    return _wait(tx, place, asker, wakes)


def admit_singleton(tx: Transaction, key: GateKey, asker: Asker) -> Decision:
    """The only permit, or none of it."""
    place = place_of(key)
    found = _found(tx, place, asker.holder)
    held = None if found is None else tx.gates.permit(found.gate, asker.holder)
    if held is not None:
        return Granted(permit=_kept(tx, place, held, asker))
    skipped_key = place.key(asker.holder, "skipped")
    written = tx.written(skipped_key)
    if written:
        return Skip(detail={"gate": place.name, "held_by": written[0].payload["held_by"]})
    batch, free = _expire(tx, place, found, 1)
    if not free:
        assert found is not None  # somebody holds it
        [holder] = [each.holder for each in tx.gates.permits(found.gate, 1)]
        skipped = {"held_by": holder}
        tx.append(
            [place.record("singleton_skipped", asker.holder, asker.permit_id, skipped)],
            key=skipped_key,
        )
        return Skip(detail={"gate": place.name, "held_by": holder})
    expires_at_ms = tx.now_ms + asker.ttl_ms
    acquired = place.record(
        "singleton_acquired",
        asker.holder,
        asker.permit_id,
        {"arrived_at_ms": tx.now_ms},
        expires_at_ms=expires_at_ms,
    )
    tx.append([*batch, acquired])
    return Granted(permit=place.permit(asker.permit_id, tx.now_ms, expires_at_ms))


def freed(tx: Transaction, place: Place, gate: StoredGate, count: int) -> list[Append]:
    """Grants to who waits next, for permits that are given back in the same transaction."""
    if not gate.waiting or not count:
        return []
    return [_acquired(tx, place, each, gate.most) for each in tx.gates.waiters(gate.gate, count)]


def abandoned(place: Place, permit: StoredPermit, reason: str) -> Append:
    return place.record(ABANDONED, permit.holder, permit.permit_id, {"reason": reason})


def renewed(place: Place, permit: StoredPermit, expires_at_ms: int) -> Append:
    return place.record(RENEWED, permit.holder, permit.permit_id, {}, expires_at_ms=expires_at_ms)


def _expire(
    tx: Transaction, place: Place, gate: StoredGate | None, most: int
) -> tuple[list[Append], int]:
    """The ends of permits that have expired, and how many permits there are to give."""
    if gate is None or gate.held < most:
        return [], most - (0 if gate is None else gate.held)
    gone = [
        each for each in tx.gates.permits(gate.gate, LOOKED_AT) if each.expires_at_ms <= tx.now_ms
    ]
    return [abandoned(place, each, "expired") for each in gone], most - gate.held + len(gone)


def _found(tx: Transaction, place: Place, asker: str) -> StoredGate | None:
    """The gate, without the permit of an earlier delivery of the asker's job, if it is one.

    The claim of that delivery is over: it is gone, or works for nothing, and takes nothing back.
    """
    found, job = tx.gates.find(place.kind, place.gate_id), job_of(asker)
    if found is None or job is None or tx.written(place.key(asker, _SUPERSEDED)):
        return found
    for each in tx.gates.permits_below(found.gate, job):
        if each.holder != clean_text(asker):
            record = abandoned(place, each, "its job was delivered again")
            tx.append([record], key=place.key(each.holder, _SUPERSEDED))
    return tx.gates.find(place.kind, place.gate_id)


def _kept(tx: Transaction, place: Place, held: StoredPermit, asker: Asker) -> Permit:
    """A permit that nobody took over is its holder's, even if it has expired meanwhile."""
    expires_at_ms = held.expires_at_ms
    if expires_at_ms <= tx.now_ms:
        expires_at_ms = tx.now_ms + asker.ttl_ms
        tx.append([renewed(place, held, expires_at_ms)])
    return place.permit(held.permit_id, held.arrived_at_ms, expires_at_ms)


def _standing(waiter: StoredWaiter) -> tuple[int, int, int]:
    return waiter.standing, waiter.arrived_at_ms, waiter.seq


def _acquired(tx: Transaction, place: Place, waiter: StoredWaiter, most: int) -> Append:
    return place.record(
        "concurrency_acquired",
        waiter.holder,
        waiter.permit_id,
        {"token": waiter.permit_id, "max": most, "arrived_at_ms": waiter.arrived_at_ms},
        expires_at_ms=tx.now_ms + waiter.ttl_ms,
    )


def _waiting(place: Place, waiter: StoredWaiter, most: int) -> Append:
    return place.record(
        "concurrency_waiting",
        waiter.holder,
        waiter.permit_id,
        {
            "max": most,
            "rank": waiter.standing,
            "arrived_at_ms": waiter.arrived_at_ms,
            "ttl_ms": waiter.ttl_ms,
        },
    )


def _wait(tx: Transaction, place: Place, asker: Asker, wakes: tuple[Wake, ...]) -> Wait:
    gate = tx.gates.find("concurrency", place.gate_id)
    assert gate is not None  # the asker waits there
    waiter = tx.gates.waiter(gate.gate, asker.holder)
    assert waiter is not None
    ahead = tx.gates.ahead(waiter, POSITION_LIMIT)
    recheck = RECHECK_MS if ahead < 2 * gate.most else FAR_RECHECK_MS
    [first] = tx.gates.permits(gate.gate, 1)
    until_ms = min(tx.now_ms + recheck, max(first.expires_at_ms, tx.now_ms + 1))
    return Wait(
        kind="concurrency",
        gate=place.name,
        until_ms=until_ms if ahead < gate.most else tx.now_ms + recheck,
        now_ms=tx.now_ms,
        position=ahead + 1 if ahead < POSITION_LIMIT else None,
        waiting=gate.waiting,
        wakes=wakes,
    )

"""Every way out of gates: permits are given back, renewed, or taken from who is gone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass

from harn_temporal.canonical import clean_text
from harn_temporal.eventlog.gate_tables import StoredGate, StoredPermit
from harn_temporal.eventlog.log import Transaction
from harn_temporal.eventlog.records import Append
from harn_temporal.gates.circuit import leave_probes
from harn_temporal.gates.decisions import Permit, Wake
from harn_temporal.gates.holding import abandoned, freed, renewed
from harn_temporal.gates.models import GateKind
from harn_temporal.gates.records import ABANDONED, stored_place, wakes_in

IDLE_MS = 3_600_000
"""How long a gate that nobody uses is still shown."""

_RELEASED: dict[str, str] = {
    "concurrency": "concurrency_released",
    "singleton": "singleton_released",
}


@dataclass(frozen=True, slots=True)
class Swept:
    """`done` is False where there is more to do: sweep again, in another transaction."""

    expired: int
    forgotten: int
    wakes: tuple[Wake, ...]
    done: bool


def release(
    tx: Transaction, holder: str, *, kinds: Collection[GateKind] = ("singleton", "concurrency")
) -> tuple[Wake, ...]:
    """Give back what a holder holds; returns whom that lets go on.

    Done again, it changes nothing and returns the same, until the holder has acquired anew.
    """
    holder = clean_text(holder)
    held = [(tx.gates.of(each.gate), each) for each in tx.gates.permits_of(holder)]
    held = [(gate, permit) for gate, permit in held if gate.kind in kinds]
    key = f"gate/released/{holder}/{'+'.join(sorted(kinds))}"
    count = 0
    latest: tuple[Wake, ...] = ()
    while written := tx.written(f"{key}/{count}"):
        latest = wakes_in(written)
        count += 1
    if not held:
        return latest
    batch: list[Append] = []
    for gate, permit in held:
        place = stored_place(gate)
        batch.append(place.record(_RELEASED[gate.kind], holder, permit.permit_id, {}))
        if gate.kind == "concurrency":
            batch += freed(tx, place, gate, 1)
    return wakes_in(tx.append(batch, key=f"{key}/{count}").records)


def renew(tx: Transaction, holder: str, ttl_ms: int) -> list[Permit]:
    """Let all that a holder holds expire `ttl_ms` from now; what is not returned was lost."""
    permits = []
    batch = []
    for each in tx.gates.permits_of(holder):
        place = stored_place(tx.gates.of(each.gate))
        expires_at_ms = tx.now_ms + ttl_ms
        if expires_at_ms > each.expires_at_ms:
            batch.append(renewed(place, each, expires_at_ms))
        permits.append(
            place.permit(each.permit_id, each.arrived_at_ms, max(expires_at_ms, each.expires_at_ms))
        )
    tx.append(batch)
    return permits


def abandon(
    tx: Transaction, holder: str, *, reason: str = "gone", gate: StoredGate | None = None
) -> tuple[Wake, ...]:
    """Take all that a holder holds and waits for; returns whom that lets go on.

    With `gate` only what is about that gate. For a dispatch that ends while it waits, for one that
    was terminated, and for `gate release`. Doing it again changes nothing.
    """
    holder = clean_text(holder)
    batch: list[Append] = []
    permits = {each.gate: each for each in tx.gates.permits_of(holder)}
    waiters = {each.gate: each for each in tx.gates.waiters_of(holder)}
    for number in sorted(permits.keys() | waiters.keys()):
        if gate is not None and number != gate.gate:
            continue
        found = tx.gates.of(number)
        place = stored_place(found)
        permit_id = (permits.get(number) or waiters[number]).permit_id
        batch.append(place.record(ABANDONED, holder, permit_id, {"reason": reason}))
        if number in permits and found.kind == "concurrency":
            batch += freed(tx, place, found, 1)
    wakes = wakes_in(tx.append(batch).records)
    if gate is None:
        leave_probes(tx, holder)
    return wakes


def sweep(tx: Transaction, limit: int = 100, *, idle_ms: int = IDLE_MS) -> Swept:
    """End up to `limit` permits that have expired, and forget up to `limit` rows of idle gates.

    Idle is a gate about which nothing has counted for `idle_ms`.
    """
    expired = tx.gates.expired(limit)
    counts = Counter(each.gate for each in expired)
    batch: list[Append] = []
    for number, count in counts.items():
        batch += _expired(tx, tx.gates.of(number), count, expired)
    wakes = wakes_in(tx.append(batch).records)
    forgotten = tx.gates.forget_idle(limit, idle_ms)
    done = len(expired) < limit and forgotten < limit
    return Swept(len(expired), forgotten, wakes, done)


def _expired(
    tx: Transaction, gate: StoredGate, count: int, permits: list[StoredPermit]
) -> list[Append]:
    place = stored_place(gate)
    gone = [abandoned(place, each, "expired") for each in permits if each.gate == gate.gate]
    return [*gone, *freed(tx, place, gate, count)] if gate.kind == "concurrency" else gone

"""Gates that count: a hit counts for a period and is free again when the period is over.

A hit at `t` counts from `t` to `t + period_ms - 1`. Hits are numbered, so that one look at the
hit that is `max` before the next says whether there is room, however large `max` is. In a throttle
everybody who waits has a turn of his own, numbered likewise: nobody is woken for nothing.
"""

from __future__ import annotations

from typing import Any, Literal

from harn_temporal.eventlog.gate_tables import StoredGate
from harn_temporal.eventlog.log import Transaction
from harn_temporal.eventlog.records import Append
from harn_temporal.gates.decisions import Asker, Decision, Granted, Skip, Wait
from harn_temporal.gates.identity import GateKey
from harn_temporal.gates.models import RateLimit, Throttle
from harn_temporal.gates.records import Place, place_of

_ALLOWED, _BLOCKED = "rate_limit_allowed", "rate_limit_blocked"


def admit_rate_limit(tx: Transaction, gate: RateLimit, key: GateKey, asker: Asker) -> Decision:
    """What it said once it says again, however much later."""
    place = place_of(key)
    once = place.key(asker.holder, "asked")
    written = tx.written(once)
    if not written:
        found = tx.gates.find("rate_limit", key.gate_id)
        free_at_ms, at_ms = _window(tx, found, gate)
        payload = {"max": gate.max, "period_ms": gate.period_ms, "at_ms": at_ms}
        kind = _ALLOWED
        if free_at_ms > tx.now_ms:
            kind, payload = _BLOCKED, {**payload, "free_at_ms": free_at_ms, "at_ms": tx.now_ms}
        record = place.record(kind, asker.holder, asker.permit_id, payload)
        written = tx.append([record], key=once).records
    if written[0].kind == _ALLOWED:
        return Granted()
    names = ("max", "period_ms", "free_at_ms")
    return Skip(detail={"gate": place.name, **{name: written[0].payload[name] for name in names}})


def admit_throttle(tx: Transaction, gate: Throttle, key: GateKey, asker: Asker) -> Decision:
    """Now, or at a turn that keeps to the limit when everybody comes at theirs."""
    place = place_of(key)
    once = place.key(asker.holder, "acquired")
    if tx.written(once):
        return Granted()
    found = tx.gates.find("throttle", key.gate_id)
    waiter = None if found is None else tx.gates.waiter(found.gate, asker.holder)
    if waiter is not None and tx.now_ms < waiter.until_ms:
        return _wait(tx, place, found, waiter.until_ms)
    free_at_ms, at_ms = _window(tx, found, gate)
    turn: Literal["new", "freed", "same"] = "new"
    freed_seq = 0
    if waiter is not None:
        until_ms = free_at_ms
        if free_at_ms > tx.now_ms:
            # Shortly late, it waits a little longer; after a pause of everything, it lines up.
            turn = "same" if tx.now_ms < waiter.until_ms + gate.period_ms else "new"
            if turn == "new":
                until_ms = _next_turn(tx, found, gate, free_at_ms)
    else:
        until_ms = _next_turn(tx, found, gate, free_at_ms)
        freed = None if found is None or until_ms <= tx.now_ms else tx.gates.freed(found.gate)
        if freed is not None and free_at_ms <= freed[0] < until_ms:
            turn, (until_ms, freed_seq) = "freed", freed
    payload: dict[str, Any] = {"max": gate.max, "period_ms": gate.period_ms}
    if until_ms <= tx.now_ms:
        tx.append([_acquired(place, asker, {**payload, "at_ms": at_ms})], key=once)
        return Granted()
    waited = {
        **payload,
        "delay_ms": until_ms - tx.now_ms,
        "until_ms": until_ms,
        "turn": turn,
        "freed_seq": freed_seq,
        "arrived_at_ms": tx.now_ms,
    }
    tx.append([place.record("throttle_wait", asker.holder, asker.permit_id, waited)])
    return _wait(tx, place, tx.gates.find("throttle", key.gate_id), until_ms)


def _window(
    tx: Transaction, found: StoredGate | None, gate: RateLimit | Throttle
) -> tuple[int, int]:
    """From when on there is room for another hit, and the time of one now.

    Time does not go back between hits, even where the clocks of two hosts differ.
    """
    if found is None:
        return 0, tx.now_ms
    oldest, last = tx.gates.hits(found.gate, found.hits - gate.max + 1, found.hits)
    free_at_ms = 0 if oldest is None else oldest + gate.period_ms
    return free_at_ms, max(tx.now_ms, last or 0)


def _next_turn(tx: Transaction, found: StoredGate | None, gate: Throttle, free_at_ms: int) -> int:
    """The first time that is `period_ms` after the turn that is `max` turns before."""
    before = None if found is None else tx.gates.slot(found.gate, found.slots - gate.max + 1)
    return max(tx.now_ms, free_at_ms, 0 if before is None else before + gate.period_ms)


def _acquired(place: Place, asker: Asker, payload: dict[str, Any]) -> Append:
    return place.record("throttle_acquired", asker.holder, asker.permit_id, payload)


def _wait(tx: Transaction, place: Place, found: StoredGate | None, until_ms: int) -> Wait:
    return Wait(
        kind="throttle",
        gate=place.name,
        until_ms=until_ms,
        now_ms=tx.now_ms,
        waiting=0 if found is None else found.waiting,
    )

"""The projection of gates: what their own records leave. Gate records of others are passed over.

All records of a gate lie in one topic, in the order in which they were decided upon. So a record
says what was decided, with all its numbers, and the fold does no more than keep it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from harn_temporal.canonical import clean_text
from harn_temporal.eventlog import topics
from harn_temporal.eventlog.fields import Malformed, integer, mapping, text
from harn_temporal.eventlog.gate_tables import NEVER_MS, StoredGate
from harn_temporal.eventlog.records import Record
from harn_temporal.eventlog.statements import Statements
from harn_temporal.headers import EXPIRES_AT_MS, GATE_ID, HOLDER, PERMIT_ID

_DIGITS = 18
_LARGEST = NEVER_MS // 2
"""Of numbers and times that we add to each other in 64 bits."""


class GatesProjection:
    name = "gates"
    version = 2

    def folds(self, topic: str) -> bool:
        return topics.gate_kind(topic) is not None

    def fold(self, statements: Statements, record: Record) -> None:
        gate_id, holder = (record.headers.get(name) for name in (GATE_ID, HOLDER))
        if gate_id is None or holder is None:
            return  # of others
        kind = topics.gate_kind(record.topic)
        act = _FOLDS.get((kind or "", record.kind))
        if act is None:
            raise Malformed(f"has the unknown kind {record.kind!r}")
        step = _step(record, mapping(record), holder)
        gate = _gate(statements, kind or "", clean_text(gate_id), step)
        act(statements, gate, step)
        gate.last_at_ms = max(gate.last_at_ms, step.at_ms)
        busy = gate.held or gate.waiting
        gate.idle_from_ms = NEVER_MS if busy else gate.last_at_ms + gate.period_ms
        statements.run("gates.write", **asdict(gate))


@dataclass(slots=True)
class _Gate:
    """The numbers of a gate, to be changed and written back."""

    gate: int
    most: int
    period_ms: int
    held: int
    waiting: int
    hits: int
    slots: int
    first_at_ms: int
    due_at_ms: int
    last_at_ms: int
    idle_from_ms: int
    batch_id: str


@dataclass(frozen=True, slots=True)
class _Step:
    """What a record says, in one form for all kinds; a number that is not there is 0."""

    payload: dict[str, Any]
    holder: str
    permit_id: str
    expires_at_ms: int
    event_id: int
    at_ms: int

    def number(self, name: str) -> int:
        found = integer(self.payload, name)
        if not 0 <= found <= _LARGEST:
            raise Malformed(f"has no sensible number in {name}")
        return found


def _step(record: Record, payload: dict[str, Any], holder: str) -> _Step:
    expires = record.headers.get(EXPIRES_AT_MS, "0")
    if not (expires.isascii() and expires.isdecimal() and len(expires) <= _DIGITS):
        raise Malformed(f"has no number in the header {EXPIRES_AT_MS}")
    at_ms = integer(payload, "at_ms") if "at_ms" in payload else record.occurred_at_ms
    return _Step(
        payload,
        clean_text(holder),
        clean_text(record.headers.get(PERMIT_ID, "")),
        int(expires),
        record.event_id,
        min(max(at_ms, 0), _LARGEST),
    )


def _gate(statements: Statements, kind: str, gate_id: str, step: _Step) -> _Gate:
    rows = statements.rows("gates.find", kind=kind, gate_id=gate_id)
    if rows:
        found = StoredGate(*rows[0])
        return _Gate(
            found.gate,
            found.most,
            found.period_ms,
            found.held,
            found.waiting,
            found.hits,
            found.slots,
            found.first_at_ms,
            found.due_at_ms,
            found.last_at_ms,
            found.idle_from_ms,
            found.batch_id,
        )
    added = statements.rows(
        "gates.add",
        kind=kind,
        gate_id=gate_id,
        gate_name=text(step.payload, "gate"),
        binding_key=text(step.payload, "binding_key"),
    )
    return _Gate(int(added[0][0]), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, "")


def _acquired(statements: Statements, gate: _Gate, step: _Step) -> None:
    """Of a gate that is held. Whoever waited for it waits no longer."""
    held = statements.rows("gates.permit", gate=gate.gate, holder=step.holder)
    arrived_at_ms = step.number("arrived_at_ms")
    if "max" in step.payload:
        gate.most = step.number("max")
    statements.run(
        "gates.add_permit",
        gate=gate.gate,
        holder=step.holder,
        permit_id=step.permit_id,
        arrived_at_ms=arrived_at_ms,
        acquired_at_ms=step.at_ms,
        expires_at_ms=step.expires_at_ms,
    )
    gate.held += 0 if held else 1
    _drop_waiter(statements, gate, step.holder)


def _renewed(statements: Statements, gate: _Gate, step: _Step) -> None:
    statements.run(
        "gates.renew_permit",
        gate=gate.gate,
        holder=step.holder,
        permit_id=step.permit_id,
        expires_at_ms=step.expires_at_ms,
    )


def _released(statements: Statements, gate: _Gate, step: _Step) -> None:
    gate.held -= statements.run("gates.drop_permit", gate=gate.gate, holder=step.holder)


def _waiting(statements: Statements, gate: _Gate, step: _Step) -> None:
    gate.most = step.number("max")
    _add_waiter(
        statements,
        gate,
        step,
        standing=step.number("rank"),
        arrived_at_ms=step.number("arrived_at_ms"),
        ttl_ms=step.number("ttl_ms"),
    )


def _abandoned(statements: Statements, gate: _Gate, step: _Step) -> None:
    """A holder or a waiter is gone; the turn of one who waited in a throttle is free again."""
    _released(statements, gate, step)
    rows = statements.rows("gates.waiter", gate=gate.gate, holder=step.holder)
    _drop_waiter(statements, gate, step.holder)
    if rows and rows[0][6] > step.at_ms:
        statements.run("gates.free_slot", gate=gate.gate, at_ms=rows[0][6], seq=step.event_id)
    if not gate.waiting:
        _begin_anew(gate)


def _skipped(_statements: Statements, _gate: _Gate, _step: _Step) -> None:
    """Somebody else's turn; the gate stands as it stood."""


def _hit(statements: Statements, gate: _Gate, step: _Step) -> None:
    """It counts for a period. Of more than `max` the oldest can no longer decide anything."""
    gate.most, gate.period_ms = step.number("max"), step.number("period_ms")
    gate.hits += 1
    statements.run("gates.add_hit", gate=gate.gate, seq=gate.hits, at_ms=step.at_ms)
    statements.run("gates.drop_hits", gate=gate.gate, seq=gate.hits - gate.most)


def _throttled(statements: Statements, gate: _Gate, step: _Step) -> None:
    """The turn of a waiter: a new one, one that was given back, or a later time for the same."""
    turn, until_ms = text(step.payload, "turn"), step.number("until_ms")
    gate.most, gate.period_ms = step.number("max"), step.number("period_ms")
    gate.last_at_ms = max(gate.last_at_ms, until_ms)
    if turn == "new":
        _take_turn(statements, gate, until_ms)
    elif turn == "freed":
        seq = step.number("freed_seq")
        statements.run("gates.take_freed", gate=gate.gate, at_ms=until_ms, seq=seq)
    if statements.rows("gates.waiter", gate=gate.gate, holder=step.holder):
        statements.run("gates.move_waiter", gate=gate.gate, holder=step.holder, until_ms=until_ms)
    else:
        _add_waiter(
            statements,
            gate,
            step,
            standing=0,
            arrived_at_ms=step.number("arrived_at_ms"),
            until_ms=until_ms,
        )


def _throttle_acquired(statements: Statements, gate: _Gate, step: _Step) -> None:
    _hit(statements, gate, step)
    if not _drop_waiter(statements, gate, step.holder):
        _take_turn(statements, gate, step.at_ms)
    statements.run("gates.drop_freed", gate=gate.gate, at_ms=step.at_ms)


def _seen(statements: Statements, gate: _Gate, step: _Step) -> None:
    """Only the last arrival still waits."""
    statements.run("gates.drop_waiters", gate=gate.gate)
    gate.waiting = 0
    gate.first_at_ms, gate.due_at_ms = step.number("first_at_ms"), step.number("due_at_ms")
    _add_waiter(statements, gate, step, standing=0, arrived_at_ms=step.at_ms)


def _selected(statements: Statements, gate: _Gate, step: _Step) -> None:
    _drop_waiter(statements, gate, step.holder)
    _begin_anew(gate)


def _enqueued(statements: Statements, gate: _Gate, step: _Step) -> None:
    gate.most = step.number("size")
    gate.batch_id = text(step.payload, "batch")
    gate.first_at_ms, gate.due_at_ms = step.number("first_at_ms"), step.number("due_at_ms")
    _add_waiter(statements, gate, step, standing=0, arrived_at_ms=0)


def _dispatched(statements: Statements, gate: _Gate, _step: _Step) -> None:
    statements.run("gates.drop_waiters", gate=gate.gate)
    gate.waiting = 0
    _begin_anew(gate)


def _begin_anew(gate: _Gate) -> None:
    gate.first_at_ms = gate.due_at_ms = 0
    gate.batch_id = ""


def _take_turn(statements: Statements, gate: _Gate, at_ms: int) -> None:
    gate.slots += 1
    statements.run("gates.add_slot", gate=gate.gate, seq=gate.slots, at_ms=at_ms)
    statements.run("gates.drop_slots", gate=gate.gate, seq=gate.slots - gate.most)


def _add_waiter(
    statements: Statements,
    gate: _Gate,
    step: _Step,
    *,
    standing: int,
    arrived_at_ms: int,
    until_ms: int = 0,
    ttl_ms: int = 0,
) -> None:
    _drop_waiter(statements, gate, step.holder)
    statements.run(
        "gates.add_waiter",
        gate=gate.gate,
        holder=step.holder,
        permit_id=step.permit_id,
        standing=standing,
        arrived_at_ms=arrived_at_ms,
        seq=step.event_id,
        until_ms=until_ms,
        ttl_ms=ttl_ms,
    )
    gate.waiting += 1


def _drop_waiter(statements: Statements, gate: _Gate, holder: str) -> bool:
    dropped = statements.run("gates.drop_waiter", gate=gate.gate, holder=holder)
    gate.waiting -= dropped
    return dropped > 0


_FOLDS: dict[tuple[str, str], Callable[[Statements, _Gate, _Step], None]] = {
    ("concurrency", "concurrency_acquired"): _acquired,
    ("concurrency", "concurrency_waiting"): _waiting,
    ("concurrency", "concurrency_released"): _released,
    ("singleton", "singleton_acquired"): _acquired,
    ("singleton", "singleton_skipped"): _skipped,
    ("singleton", "singleton_released"): _released,
    ("rate_limit", "rate_limit_allowed"): _hit,
    ("rate_limit", "rate_limit_blocked"): _skipped,
    ("throttle", "throttle_acquired"): _throttle_acquired,
    ("throttle", "throttle_wait"): _throttled,
    ("debounce", "debounce_seen"): _seen,
    ("debounce", "debounce_selected"): _selected,
    ("batch", "batch_enqueued"): _enqueued,
    ("batch", "batch_dispatched"): _dispatched,
    **{(kind, "gate_abandoned"): _abandoned for kind in topics.GATE_KINDS},
    **{(kind, "gate_renewed"): _renewed for kind in ("concurrency", "singleton")},
}

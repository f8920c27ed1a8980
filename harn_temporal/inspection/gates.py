"""Gates and circuits as they are shown: who holds, who waits, and until when."""

from __future__ import annotations

from typing import Any

from harn_temporal.clock import rfc3339
from harn_temporal.errors import NotFoundError
from harn_temporal.eventlog.circuits import StoredCircuit
from harn_temporal.eventlog.gate_tables import NEVER_MS, StoredGate, StoredWaiter
from harn_temporal.eventlog.log import Reader

SHOWN = 1_000
"""Holders and waiters of one gate."""

WINDOWS = frozenset({"rate_limit", "throttle"})
GATHERING = frozenset({"debounce", "batch"})


def gates_and_circuits(reader: Reader, kind: str | None, limit: int) -> dict[str, Any]:
    """The first `limit` gates by name, and all circuits that are not closed and well."""
    found: list[StoredGate] = []
    page = reader.gates.page(None, limit)
    while page and len(found) < limit:
        found += [gate for gate in page if kind in (None, gate.kind)]
        page = reader.gates.page(page[-1], limit)
    circuits: list[StoredCircuit] = []
    while some := reader.circuits.page(circuits[-1].destination if circuits else ""):
        circuits += some
    return {
        "gates": [gate_view(reader, gate) for gate in found[:limit]],
        "circuits": [circuit_view(each, reader.now_ms) for each in circuits],
    }


def gate_view(reader: Reader, gate: StoredGate) -> dict[str, Any]:
    """`in_window` is null for gates without one, `due_at` for those that gather nothing."""
    return {
        "gate": gate.name,
        "kind": gate.kind,
        "gate_id": gate.gate_id,
        "binding_key": gate.binding_key,
        "max": gate.most or None,
        "period_ms": gate.period_ms or None,
        "held": gate.held,
        "waiting": gate.waiting,
        "in_window": _in_window(reader, gate) if gate.kind in WINDOWS else None,
        "due_at": _moment(gate.due_at_ms),
        "last_at": _moment(gate.last_at_ms),
    }


def detailed_view(reader: Reader, gate: StoredGate) -> dict[str, Any]:
    """`gate_view`, with the first holders and waiters, in the order of their turns."""
    return {
        **gate_view(reader, gate),
        "holders": [
            {
                "holder": permit.holder,
                "permit_id": permit.permit_id,
                "acquired_at": _moment(permit.acquired_at_ms),
                "expires_at": _moment(permit.expires_at_ms),
            }
            for permit in reader.gates.permits(gate.gate, SHOWN)
        ],
        "waiters": [
            {
                "holder": waiter.holder,
                "rank": waiter.standing,
                "arrived_at": _moment(waiter.arrived_at_ms),
                "until": _moment(_until(gate, waiter)),
            }
            for waiter in reader.gates.waiters(gate.gate, SHOWN)
        ],
    }


def circuit_view(circuit: StoredCircuit, now_ms: int) -> dict[str, Any]:
    """`state` is closed, open, or half-open: then one dispatch at a time tries."""
    state = "closed"
    if circuit.open_until_ms:
        state = "open" if now_ms < circuit.open_until_ms else "half-open"
    return {
        "destination": circuit.destination,
        "state": state,
        "failures": circuit.failures,
        "open_until": _moment(circuit.open_until_ms),
        "probe": circuit.probe or None,
    }


def named_gates(reader: Reader, name: str, kind: str | None) -> list[StoredGate]:
    """Raises NotFoundError where there is none."""
    found = [gate for gate in reader.gates.named(name) if kind in (None, gate.kind)]
    if not found:
        what = "gate" if kind is None else f"{kind} gate"
        raise NotFoundError(
            f"no {what} is called {name!r}; `harn-temporal gate ls` shows those that are in use"
        )
    return found


def _in_window(reader: Reader, gate: StoredGate) -> int:
    """How many of the last hits still count: they are numbered, and their times only grow."""
    first, last = max(1, gate.hits - gate.most + 1), gate.hits
    after_ms = reader.now_ms - gate.period_ms
    low, high = first, last + 1
    while low < high:
        middle = (low + high) // 2
        at_ms, _ = reader.gates.hits(gate.gate, middle, middle)
        if at_ms is not None and at_ms > after_ms:
            high = middle
        else:
            low = middle + 1
    return last + 1 - low


def _until(gate: StoredGate, waiter: StoredWaiter) -> int:
    return gate.due_at_ms if gate.kind in GATHERING else waiter.until_ms


def _moment(at_ms: int) -> str | None:
    return rfc3339(at_ms) if 0 < at_ms < NEVER_MS else None

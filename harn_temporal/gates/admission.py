"""A dispatch at the gates of its binding: all that let it through, in one transaction."""

from __future__ import annotations

from collections.abc import Sequence

from harn_temporal.contracts import EventAddress
from harn_temporal.eventlog.log import Transaction
from harn_temporal.gates.decisions import Asker, Decision, Granted, Passage, Permit, Wake
from harn_temporal.gates.gathering import admit_batch, admit_debounce
from harn_temporal.gates.holding import admit_concurrency, admit_singleton
from harn_temporal.gates.identity import GateKey
from harn_temporal.gates.models import (
    AnyGate,
    Batch,
    Concurrency,
    Debounce,
    RateLimit,
    Throttle,
)
from harn_temporal.gates.windows import admit_rate_limit, admit_throttle


def admit(tx: Transaction, gate: AnyGate, key: GateKey, asker: Asker) -> Decision:
    """What one gate says to a dispatch. `key` is what `gate_keys` gave for it and the event."""
    if isinstance(gate, Batch):
        return admit_batch(tx, gate, key, asker)
    if isinstance(gate, Debounce):
        return admit_debounce(tx, gate, key, asker)
    if isinstance(gate, RateLimit):
        return admit_rate_limit(tx, gate, key, asker)
    if isinstance(gate, Throttle):
        return admit_throttle(tx, gate, key, asker)
    if isinstance(gate, Concurrency):
        return admit_concurrency(tx, gate, key, asker)
    return admit_singleton(tx, key, asker)


def pass_gates(
    tx: Transaction, gates: Sequence[tuple[AnyGate, GateKey]], asker: Asker, passed: int = 0
) -> Passage:
    """Ask the gates behind the first `passed` in order, until one does not grant.

    Ask again from where it stopped. What the first ones granted stays granted.
    """
    permits: list[Permit] = []
    wakes: list[Wake] = []
    batch: EventAddress | None = None
    for gate, key in gates[passed:]:
        decision = admit(tx, gate, key, asker)
        wakes += decision.wakes
        if not isinstance(decision, Granted):
            return Passage(
                passed=passed,
                stopped=decision,
                permits=tuple(permits),
                batch=batch,
                wakes=tuple(wakes),
            )
        passed += 1
        batch = decision.batch or batch
        if decision.permit is not None:
            permits.append(decision.permit)
    return Passage(passed=passed, permits=tuple(permits), batch=batch, wakes=tuple(wakes))

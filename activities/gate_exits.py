"""What a dispatch does about its permits and its circuit, in the transactions of its attempts."""

from __future__ import annotations

from harn_temporal.contracts import AttemptOutcome, DispatchRequest
from harn_temporal.eventlog.log import Transaction
from harn_temporal.gates.circuit import CircuitAnswer, ask_circuit, leave_probes, tell_circuit
from harn_temporal.gates.decisions import Wake
from harn_temporal.gates.leaving import abandon, release, renew
from harn_temporal.gates.models import GateKind

LONG_WAIT_MS = 10_000
"""A concurrency permit is given back for a retry wait that is longer."""

_CONCURRENCY: tuple[GateKind, ...] = ("concurrency",)

MARGIN_MS = 15 * 60_000
"""Beyond its handler's time a permit holds so long: for the queue, and for a store that is away."""


def permit_ttl_ms(request: DispatchRequest) -> int:
    """How long a permit must hold so that one attempt, with a task that it becomes, fits in."""
    follow = request.binding.follow
    return request.binding.timeout_ms + MARGIN_MS + (0 if follow is None else follow.timeout_ms)


def holds_permits(request: DispatchRequest) -> bool:
    gates = request.binding.gates
    return gates is not None and (gates.concurrency is not None or gates.singleton is not None)


def has_its_permits(tx: Transaction, request: DispatchRequest, holder: str) -> bool:
    """Whether nobody took the dispatch's permits; those that would not last are renewed."""
    gates = request.binding.gates
    if gates is None or not holds_permits(request):
        return True
    wanted = (gates.concurrency is not None) + (gates.singleton is not None)
    held = tx.gates.permits_of(holder)
    if len(held) < wanted:
        return False
    ttl_ms = permit_ttl_ms(request)
    if any(each.expires_at_ms < tx.now_ms + ttl_ms - MARGIN_MS // 2 for each in held):
        renew(tx, holder, ttl_ms)
    return True


def leave_after(
    tx: Transaction, request: DispatchRequest, holder: str, outcome: AttemptOutcome
) -> tuple[Wake, ...]:
    """After an attempt: all permits at the end, and before a long wait the one of concurrency."""
    if not holds_permits(request):
        return ()
    if outcome.final is not None:
        return release(tx, holder)
    wait_ms = outcome.retry_in_ms or 0
    if wait_ms <= LONG_WAIT_MS:
        return ()
    wakes = release(tx, holder, kinds=_CONCURRENCY)
    renew(tx, holder, wait_ms + permit_ttl_ms(request))
    return wakes


def leave_unbegun(
    tx: Transaction, request: DispatchRequest, holder: str, reason: str
) -> tuple[Wake, ...]:
    """For a dispatch that ends while no attempt runs: what it holds, and what it waits for."""
    if request.binding.gates is None:
        return ()
    return (*release(tx, holder), *abandon(tx, holder, reason=reason))


def refused_by_circuit(
    tx: Transaction, request: DispatchRequest, holder: str
) -> CircuitAnswer | None:
    """The answer of a circuit that lets a new dispatch not begin; None where it may."""
    if request.binding.handler.kind != "a2a":
        return None
    answer = ask_circuit(
        tx, request.binding.handler.uri, holder, ttl_ms=request.binding.timeout_ms + MARGIN_MS
    )
    return answer if answer.state == "open" else None


def tell_of_attempt(
    tx: Transaction,
    request: DispatchRequest,
    holder: str,
    outcome: AttemptOutcome,
    *,
    lost: bool = False,
) -> None:
    """What an attempt means for the circuit of its agent.

    One that was cancelled says nothing, nor does one that was lost with its worker.
    """
    if request.binding.handler.kind != "a2a":
        return
    if lost or outcome.status == "cancelled":
        leave_probes(tx, holder)
        return
    retryable = outcome.retry_in_ms is not None or outcome.final == "dlq"
    tell_circuit(tx, request.binding.handler.uri, holder, outcome.attempt, failed=retryable)

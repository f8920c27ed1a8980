"""The activity that takes a dispatch through the gates of its binding."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from temporalio import activity

from harn_temporal.activities.attempt_log import AttemptLog, cancel_requested
from harn_temporal.activities.gate_exits import leave_unbegun, permit_ttl_ms
from harn_temporal.activities.gate_wakes import Wakes
from harn_temporal.activities.store_access import store_failures_told
from harn_temporal.contracts import DispatchRequest
from harn_temporal.dispatch_records import flow_key, held_back
from harn_temporal.errors import ExpressionError
from harn_temporal.event_address import with_event
from harn_temporal.eventlog.log import EventLog, Transaction
from harn_temporal.gate_contracts import GateAnswer, GateRequest
from harn_temporal.gates.admission import pass_gates
from harn_temporal.gates.decisions import Asker, Skip, Wait, Wake
from harn_temporal.gates.identity import GateKey
from harn_temporal.gates.keys import gate_keys, waiting_rank
from harn_temporal.gates.models import AnyGate, Gates
from harn_temporal.pump_records import parked
from harn_temporal.workflows.activity_types import PASS_GATES


class GateActivities:
    """Asking is one transaction, and asking again gives the same answer or a later one."""

    def __init__(self, log: EventLog, wakes: Wakes) -> None:
        self._log = log
        self._wakes = wakes

    @activity.defn(name=PASS_GATES.name)
    async def pass_gates(self, message: GateRequest) -> GateAnswer:
        with store_failures_told():
            request = await with_event(self._log, message.dispatch)
            try:
                standing: _Standing | Skip = await _standing(request)
            except ExpressionError as error:
                standing = Skip(detail={"reason": f"a key of a gate failed: {error}"})
            asking = _Asking(self._log, message, request, standing)
            answer, wakes = await self._log.transact(asking.work)
        self._wakes.send(wakes)
        return answer


@dataclass(frozen=True)
class _Standing:
    """The gates of a binding for one event, and the place of the event among those that wait."""

    gates: list[tuple[AnyGate, GateKey]]
    rank: int


class _Asking:
    def __init__(
        self,
        log: EventLog,
        message: GateRequest,
        request: DispatchRequest,
        standing: _Standing | Skip,
    ) -> None:
        self._log = log
        self._message = message
        self._request = request
        self._holder = message.dispatch_id
        self._standing = standing

    def work(self, tx: Transaction) -> tuple[GateAnswer, tuple[Wake, ...]]:
        ended = tx.inbox.outcome(self._holder)
        if ended is not None or cancel_requested(tx, self._request):
            records = AttemptLog(
                self._log,
                self._request,
                dispatch_id=self._holder,
                run_id="",
                attempt=self._message.attempts + 1,
            )
            end = records.cancelled_in(tx)
            return GateAnswer(passed=self._message.passed, ended=end), records.wakes
        if isinstance(self._standing, Skip):
            return self._skip(tx, self._message.passed, self._standing)
        asker = self._asker(self._standing.rank)
        passage = pass_gates(tx, self._standing.gates, asker, self._message.passed)
        if isinstance(passage.stopped, Skip):
            answer, more = self._skip(tx, passage.passed, passage.stopped)
            return answer, (*passage.wakes, *more)
        wait = passage.stopped if isinstance(passage.stopped, Wait) else None
        if wait is not None and not self._message.parked and self._request.claim is None:
            # A job of a queue is parked by its consumer, which its workflow tells.
            tx.append([parked(self._holder, wait.kind, now_ms=tx.now_ms)])
        answer = GateAnswer(
            passed=passage.passed,
            wait=None if wait is None else wait.model_copy(update={"wakes": ()}),
            permits=passage.permits,
            batch=passage.batch,
        )
        return answer, passage.wakes

    def _asker(self, rank: int) -> Asker:
        return Asker(
            holder=self._holder,
            permit_id=self._message.permit_id,
            ttl_ms=permit_ttl_ms(self._request),
            rank=rank,
            arrived_at_ms=self._message.arrived_at_ms,
            event_id=self._request.event_id,
            address=self._request.address,
        )

    def _skip(
        self, tx: Transaction, passed: int, skip: Skip
    ) -> tuple[GateAnswer, tuple[Wake, ...]]:
        batch = held_back(
            self._request, dict(skip.detail), workflow_id=self._holder, now_ms=tx.now_ms
        )
        tx.append(batch, key=flow_key(self._holder))
        wakes = leave_unbegun(tx, self._request, self._holder, "skipped")
        return GateAnswer(passed=passed, skip=skip.model_copy(update={"wakes": ()})), wakes


async def _standing(request: DispatchRequest) -> _Standing:
    """Expressions over a large event, and the first import of their engine, take their time."""
    gates = request.binding.gates or Gates()
    if not gates.priority and not any(gate.key for _, gate in gates.in_order()):
        return _evaluated(request, {})
    event = request.event
    assert event is not None  # with_event put it there
    return await asyncio.to_thread(lambda: _evaluated(request, event.to_json()))


def _evaluated(request: DispatchRequest, event: dict[str, Any]) -> _Standing:
    gates = (request.binding.gates or Gates()).in_order()
    keys = gate_keys(request.binding, event)
    return _Standing(
        [(gate, key) for (_, gate), key in zip(gates, keys, strict=True)],
        waiting_rank(request.binding, event),
    )

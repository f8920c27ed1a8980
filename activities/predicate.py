"""The activity that asks the predicate `when` of a binding."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from temporalio import activity

from harn_temporal.activities.attempt import LoadHandler
from harn_temporal.activities.attempt_log import cancel_requested
from harn_temporal.activities.breaker import PredicateBreaker
from harn_temporal.activities.handler_call import describe
from harn_temporal.activities.heartbeats import beating
from harn_temporal.activities.store_access import store_failures_told
from harn_temporal.clock import Clock, system_clock
from harn_temporal.context import HandlerContext
from harn_temporal.contracts import DispatchRequest, PredicateRequest, PredicateVerdict
from harn_temporal.dispatch_records import error_text, predicate_evaluated, skipped, trigger_key
from harn_temporal.event_address import with_event
from harn_temporal.eventlog.log import EventLog, Record, Transaction
from harn_temporal.events import TriggerEvent
from harn_temporal.expressions import compile_cel
from harn_temporal.telemetry import tracing
from harn_temporal.telemetry.dispatch_spans import dispatch_span
from harn_temporal.workflows.activity_types import EVALUATE_WHEN

if TYPE_CHECKING:
    from harn_temporal.expressions import CelExpression

TIMEOUT_S = 30.0
CIRCUIT_OPEN = "circuit_open"


@dataclass(frozen=True)
class _Answer:
    passed: bool
    reason: str | None
    latency_ms: int


class PredicateActivities:
    """A predicate that raises, or takes longer than `timeout_s`, counts as no."""

    def __init__(
        self,
        log: EventLog,
        load_handler: LoadHandler,
        executor: Executor,
        breaker: PredicateBreaker,
        *,
        clock: Clock = system_clock,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        self._log = log
        self._load_handler = load_handler
        self._executor = executor
        self._breaker = breaker
        self._clock = clock
        self._timeout_s = timeout_s

    @activity.defn(name=EVALUATE_WHEN.name)
    async def evaluate_when(self, message: PredicateRequest) -> PredicateVerdict:
        """An answer that is in the log already holds, whatever the predicate would say now."""
        key = trigger_key(message.dispatch_id)
        with beating():
            with store_failures_told():
                written = await self._log.query(lambda reader: reader.written(key))
                if written:
                    return _verdict_in(written)
                if await self._log.query(lambda reader: cancel_requested(reader, message.dispatch)):
                    return PredicateVerdict(passed=False, cancelled=True)
                request = await with_event(self._log, message.dispatch)
            with dispatch_span(tracing.PREDICATE, request) as span:
                answer = await self._answer(request)
                span.set({"harn.passed": answer.passed})
            with store_failures_told():
                return await self._append(request, message.dispatch_id, key, answer)

    async def _append(
        self, request: DispatchRequest, dispatch_id: str, key: str, answer: _Answer
    ) -> PredicateVerdict:
        def work(tx: Transaction) -> PredicateVerdict:
            batch = predicate_evaluated(
                request,
                passed=answer.passed,
                reason=answer.reason,
                latency_ms=answer.latency_ms,
                now_ms=tx.now_ms,
            )
            if not answer.passed:
                batch += skipped(
                    request,
                    "predicate",
                    {"result": False, "reason": answer.reason},
                    workflow_id=dispatch_id,
                    now_ms=tx.now_ms,
                )
            return _verdict_in(tx.append(batch, key=key).records)

        return await self._log.transact(work)

    async def _answer(self, request: DispatchRequest) -> _Answer:
        binding = request.binding
        if self._breaker.is_open(binding.binding_key):
            return _Answer(passed=False, reason=CIRCUIT_OPEN, latency_ms=0)
        began = time.monotonic()
        passed, reason = False, None
        try:
            async with asyncio.timeout(self._timeout_s) as limit:
                passed = await self._ask(request)
        except Exception as error:  # noqa: BLE001 - a user's code; whatever it raises means no
            late = f"the predicate did not answer within {self._timeout_s:g} s"
            reason = late if limit.expired() else describe(error)
        latency_ms = int((time.monotonic() - began) * 1000)
        if reason is None:
            self._breaker.succeeded(binding.binding_key)
        else:
            self._breaker.failed(binding.binding_key)
            reason = error_text(reason)
        return _Answer(passed=passed, reason=reason, latency_ms=latency_ms)

    async def _ask(self, request: DispatchRequest) -> bool:
        when, event = request.binding.when, request.event
        assert when is not None  # the workflow asks for bindings that have one
        assert event is not None  # with_event put it there
        if when.kind == "cel":
            return await asyncio.get_running_loop().run_in_executor(
                self._executor, _evaluate_cel, when.source, event
            )
        context = HandlerContext(
            event_id=request.event_id,
            trace_id=request.trace_id,
            trigger_id=request.binding.trigger_id,
            binding_key=request.binding.binding_key,
            attempt=0,
            max_attempts=request.binding.retry.max_attempts,
            tenant_id=request.tenant_id,
            deadline_ms=self._clock() + int(self._timeout_s * 1000),
        )
        handler = self._load_handler(when.source)
        return await handler.decide(event, context, self._executor)


@lru_cache(maxsize=256)
def _compiled(source: str) -> CelExpression:
    return compile_cel(source)


def _evaluate_cel(source: str, event: TriggerEvent) -> bool:
    """A missing field makes the expression null, and that is no."""
    return _compiled(source).holds(event.to_json())


def _verdict_in(records: tuple[Record, ...]) -> PredicateVerdict:
    payload: Any = next(r for r in records if r.kind == "predicate.evaluated").payload
    return PredicateVerdict(passed=payload["result"], error=payload["reason"])

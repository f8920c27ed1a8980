"""One hop to an A2A agent: until it answers, its time is up, or its dispatch or worker stops."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from harn_temporal.a2a.actor_chain import checked_chain
from harn_temporal.a2a.answers import INTERRUPTED
from harn_temporal.a2a.client import A2aClient, HopAnswer, Peer
from harn_temporal.a2a.failures import A2aError, TaskCanceledError
from harn_temporal.a2a.messages import HopMessage, message_id
from harn_temporal.a2a.metrics import HopOutcome, observe_hop
from harn_temporal.a2a.target import AgentTarget
from harn_temporal.activities.handler_call import HandlerEnd
from harn_temporal.activities.interruption import Interruption
from harn_temporal.bindings import Binding
from harn_temporal.contracts import DispatchRequest, RemoteTask
from harn_temporal.durations import format_duration
from harn_temporal.errors import UsageError
from harn_temporal.telemetry import tracing

T = TypeVar("T")

_WAITS_FOR_SOMEBODY = "the agent's task waits for somebody ({state}) and says nothing more"


class AgentHop:
    """`interruption` tells why a CancelledError came; SHUTDOWN and GONE are raised on."""

    def __init__(self, client: A2aClient, *, interruption: Callable[[], Interruption]) -> None:
        self._client = client
        self._interruption = interruption

    async def send(self, request: DispatchRequest) -> HandlerEnd:
        """Give the agent the event, and tell how that ended or that it goes on as a task."""
        began = time.monotonic()
        outcome: HopOutcome = "abandoned"
        try:
            with tracing.span(tracing.HOP, kind="client", attributes=_target(request)) as span:
                end = await self._uninterrupted(self._send(request), request.binding)
                outcome = _metric(end)
                span.set({"harn.outcome": outcome})
        finally:
            observe_hop(request.binding.handler.uri, outcome, time.monotonic() - began)
        return end

    async def ask(self, request: DispatchRequest, task: RemoteTask) -> HandlerEnd:
        """How the task is doing. An agent that cannot be asked just now leaves it pending."""
        try:
            answer = await self._client.task(
                peer_of(request.binding),
                task,
                trace_id=request.trace_id,
                traceparent=request.traceparent,
            )
        except A2aError as error:
            if error.says_nothing_of_the_task:
                return HandlerEnd(
                    "waiting",
                    error=str(error),
                    retry_after_ms=error.retry_after_ms,
                    remote_task=task,
                    pending=True,
                )
            return _failed(error, task)
        return _answered(request.binding, answer)

    async def cancel(self, request: DispatchRequest, task: RemoteTask) -> None:
        """Ask the agent to cancel the task; A2aError where it does not."""
        await self._client.cancel(
            peer_of(request.binding),
            task,
            trace_id=request.trace_id,
            traceparent=request.traceparent,
        )

    async def _send(self, request: DispatchRequest) -> HandlerEnd:
        binding = request.binding
        try:
            answer = await self._client.send(
                peer_of(binding),
                _message(request),
                wait=binding.follow is None,
                within_s=binding.timeout_ms / 1000,
            )
        except A2aError as error:
            return _failed(error)
        except UsageError as error:  # a target that the manifest's check would have refused
            return HandlerEnd("denied", error=str(error), retryable=False)
        return _answered(binding, answer)

    async def _uninterrupted(
        self, work: Coroutine[Any, Any, HandlerEnd], binding: Binding
    ) -> HandlerEnd:
        task = asyncio.ensure_future(work)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + binding.timeout_ms / 1000
        while True:
            try:
                done, _ = await asyncio.wait({task}, timeout=max(deadline - loop.time(), 0))
            except asyncio.CancelledError:
                why = self._interruption()
                if why is Interruption.IGNORED:
                    continue
                await _stop(task)
                if why is not Interruption.CANCELLED:
                    raise
                return HandlerEnd("cancelled", error="cancelled")
            if done:
                return task.result()
            await _stop(task)
            limit = format_duration(binding.timeout_ms)
            return HandlerEnd("timeout", error=f"the agent did not answer within {limit}")


def peer_of(binding: Binding) -> Peer:
    """Raises UsageError for a target that is none."""
    return Peer(
        AgentTarget.parse(binding.handler.uri),
        allow_cleartext=binding.allow_cleartext,
        bearer_env=binding.bearer_env,
    )


def _target(request: DispatchRequest) -> tracing.Attributes:
    return {"harn.target_uri": request.binding.handler.uri}


def _message(request: DispatchRequest) -> HopMessage:
    event = request.event
    assert event is not None  # with_event put it there
    return HopMessage(
        message_id=message_id(
            trace_id=request.trace_id,
            event_id=request.event_id,
            trigger_id=request.binding.trigger_id,
            replay=request.replay,
        ),
        trace_id=request.trace_id,
        event_id=request.event_id,
        trigger_id=request.binding.trigger_id,
        binding_key=request.binding.binding_key,
        target_agent=peer_of(request.binding).target.agent,
        event=event.to_json(),
        actor_chain=checked_chain((event.model_extra or {}).get("actor_chain")),
        traceparent=request.traceparent,
    )


def _answered(binding: Binding, answer: HopAnswer) -> HandlerEnd:
    follows = binding.follow is not None
    task = answer.task
    if answer.pending and follows and task is not None:
        if task.state in INTERRUPTED:
            asked = answer.asked or _WAITS_FOR_SOMEBODY.format(state=task.state)
            return HandlerEnd("waiting", error=asked, remote_task=task)
        return HandlerEnd("waiting", remote_task=task, pending=True)
    return HandlerEnd("success", result=answer.result, remote_task=task)


def _failed(error: A2aError, task: RemoteTask | None = None) -> HandlerEnd:
    return HandlerEnd(
        error.status,
        error=str(error),
        error_class=error.error_class,
        retryable=error.retryable,
        retry_after_ms=error.retry_after_ms,
        remote_task=None if task is None else _ended_task(error, task),
    )


def _ended_task(error: A2aError, task: RemoteTask) -> RemoteTask:
    state = "canceled" if isinstance(error, TaskCanceledError) else "failed"
    return task.model_copy(update={"state": state})


def _metric(end: HandlerEnd) -> HopOutcome:
    if end.status == "success":
        still = end.remote_task is not None and end.remote_task.state != "completed"
        return "pending" if still else "completed"
    outcomes: dict[str, HopOutcome] = {
        "waiting": "pending",
        "denied": "denied",
        "timeout": "timeout",
        "cancelled": "abandoned",
    }
    return outcomes.get(end.status, "failed" if end.retryable else "canceled")


async def _stop(task: asyncio.Future[Any]) -> None:
    task.cancel()
    await asyncio.wait({task})
    _ = task.cancelled() or task.exception()  # seen: it is of no interest any more

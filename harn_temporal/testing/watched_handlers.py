"""Handlers that remember what they raised, and functions that stand in for agents."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Any

from pydantic import JsonValue

from harn_temporal.a2a.client import A2aClient
from harn_temporal.activities.a2a_hop import AgentHop
from harn_temporal.activities.attempt import LoadHandler
from harn_temporal.activities.handler_call import HandlerCall, HandlerEnd
from harn_temporal.activities.interruption import interruption
from harn_temporal.clock import Clock
from harn_temporal.context import HandlerContext
from harn_temporal.contracts import DispatchRequest
from harn_temporal.errors import UsageError
from harn_temporal.events import TriggerEvent
from harn_temporal.handlers import Handler

StandIn = Callable[[TriggerEvent], Any]
"""What an agent answers to an event: a function, `def` or `async def`."""


@dataclass
class LastRaised:
    exception: BaseException | None = None

    def take(self) -> BaseException | None:
        taken, self.exception = self.exception, None
        return taken


@dataclass(frozen=True)
class WatchedHandler(Handler):
    """A handler as it is; what it raises goes to `raised` on its way out."""

    raised: LastRaised = field(default_factory=LastRaised)

    async def call(
        self, event: TriggerEvent, context: HandlerContext, executor: Executor
    ) -> JsonValue:
        try:
            return await super().call(event, context, executor)
        except Exception as error:
            self.raised.exception = error
            raise


def watched(load: LoadHandler, raised: LastRaised) -> LoadHandler:
    def load_watched(name: str) -> Handler:
        return _watched(load(name), raised)

    return load_watched


class StandInHop(AgentHop):
    """Answers for agents, by the `a2a://` target of a binding, without a network."""

    def __init__(
        self,
        agents: Mapping[str, StandIn],
        raised: LastRaised,
        executor: Executor,
        clock: Clock,
    ) -> None:
        super().__init__(A2aClient(clock=clock), interruption=interruption)
        self._agents = agents
        self._raised = raised
        self._executor = executor
        self._clock = clock

    async def send(self, request: DispatchRequest, *_: Any) -> HandlerEnd:
        uri, event, binding = request.binding.handler.uri, request.event, request.binding
        function = self._agents.get(uri)
        if function is None:
            raise UsageError(
                f"trigger {binding.trigger_id} goes to {uri}, and a test has no network; say what "
                f'it answers: agents={{"{uri}": lambda event: ...}}'
            )
        assert event is not None  # an attempt reads it before it acts
        handler = Handler(
            uri, function, wants_context=False, is_async=inspect.iscoroutinefunction(function)
        )
        context = HandlerContext(
            event_id=request.event_id,
            trace_id=request.trace_id,
            trigger_id=binding.trigger_id,
            binding_key=binding.binding_key,
            attempt=1,
            max_attempts=binding.retry.max_attempts,
            tenant_id=request.tenant_id,
            deadline_ms=self._clock() + binding.timeout_ms,
        )
        call = HandlerCall(
            _watched(handler, self._raised),
            event,
            context,
            self._executor,
            interruption=interruption,
        )
        return await call.run(binding.timeout_ms)


def _watched(handler: Handler, raised: LastRaised) -> WatchedHandler:
    return WatchedHandler(
        handler.name,
        handler.function,
        wants_context=handler.wants_context,
        is_async=handler.is_async,
        raised=raised,
    )

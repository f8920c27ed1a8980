"""The client: a message to an agent, questions about its task, and its cancellation."""

from __future__ import annotations

import os
import ssl
import traceback
import uuid
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import httpx

from harn_temporal.a2a.answers import HANDLE_KIND, Answer, Completed, Pending
from harn_temporal.a2a.card_cache import CardCache
from harn_temporal.a2a.cards import AgentCard, Generation, Offer, checked, choose
from harn_temporal.a2a.connecting import default_context
from harn_temporal.a2a.credentials import Secrets, has_token, read_secrets
from harn_temporal.a2a.discovery import Discovery, Trail, check_status
from harn_temporal.a2a.exchange import Bounds, Exchanger, Reply, aside, exchanger
from harn_temporal.a2a.failures import (
    A2aError,
    AgentHttpError,
    AgentProtocolError,
    AgentRefusedError,
)
from harn_temporal.a2a.limits import HopLimits
from harn_temporal.a2a.messages import (
    CANCEL_TASK,
    GET_TASK,
    SEND,
    VERSIONS,
    HopMessage,
    send_params,
)
from harn_temporal.a2a.replies import (
    check_content_type,
    result_in,
    understood,
    with_rpc_text,
)
from harn_temporal.a2a.target import AgentTarget
from harn_temporal.a2a.tracing import trace_headers
from harn_temporal.canonical import encode
from harn_temporal.clock import Clock, system_clock
from harn_temporal.contracts import RemoteTask
from harn_temporal.errors import HarnTemporalError

_BUSY = frozenset({429, 503})


@dataclass(frozen=True)
class Peer:
    """An agent, and what its binding says about speaking to it."""

    target: AgentTarget
    allow_cleartext: bool = False
    bearer_env: str | None = None


@dataclass(frozen=True)
class HopAnswer:
    """`result` is what the dispatch gets; for a pending task that is its handle.

    `asked` is what the agent waits for, where its task waits for somebody.
    """

    result: Any
    task: RemoteTask | None = None
    pending: bool = False
    asked: str | None = None


@dataclass(frozen=True)
class _Line:
    """Where to call, and how."""

    url: httpx.URL
    generation: Generation
    tenant: str | None
    headers: Mapping[str, str]
    secrets: Secrets


class A2aClient:
    """Speaks to agents; its methods raise A2aError for all that is no answer.

    Each call has connections of its own and keeps no cookie; only resolved cards are kept. Tokens
    are read from `environ` when they are needed, and are in no answer and no error.
    """

    def __init__(
        self,
        *,
        limits: HopLimits | None = None,
        context: ssl.SSLContext | None = None,
        environ: Mapping[str, str] = os.environ,
        clock: Clock = system_clock,
        cache: CardCache | None = None,
    ) -> None:
        self._limits = limits or HopLimits()
        self._context = context
        self._environ = environ
        self._clock = clock
        self._cache = cache or CardCache(self._limits.cache_s)
        self._tokens: frozenset[str] = frozenset()

    def unusable_tokens(self, names: Iterable[str]) -> list[str]:
        """Those environment variables, sorted, that hold no token which could be sent."""
        return [name for name in sorted(set(names)) if not has_token(self._environ, name)]

    async def send(
        self, peer: Peer, message: HopMessage, *, wait: bool, within_s: float
    ) -> HopAnswer:
        """Find the agent and give it the message. `within_s` bounds the call itself.

        With `wait` the agent is asked to answer when it is done; it may answer earlier.
        """
        async with self._speaking(peer) as (exchange, secrets):
            try:
                card, offer, url = await self._resolved(exchange, peer, secrets)
                generation = cast("Generation", offer.generation)  # choose gives none without
                event_headers = message.event.get("headers", {})
                traced = trace_headers(message.trace_id, event_headers, message.traceparent)
                line = _Line(url, generation, offer.tenant, traced, secrets)
                params = send_params(message, generation, secrets, wait=wait)
                bounds = Bounds(within_s, self._limits.reply_bytes)
                answer = await self._call(exchange, line, SEND[generation], params, bounds)
            except A2aError as error:
                self._forget_after(error, peer)
                raise
            return _hop_answer(answer, _task_at(peer, card, offer, url))

    async def task(
        self, peer: Peer, task: RemoteTask, *, trace_id: str, traceparent: str | None = None
    ) -> HopAnswer:
        """How the task is doing. Raises TaskFailedError and the like where it ended badly."""
        headers = trace_headers(trace_id, {}, traceparent)
        async with self._about_task(peer, task, headers) as (exchange, line, bounds):
            method, params = GET_TASK[line.generation], {"id": task.task_id}
            answer = await self._call(exchange, line, method, params, bounds)
            if answer.task_id != task.task_id:
                raise AgentProtocolError("the agent answers about another task, or none")
        return _hop_answer(answer, task)

    async def cancel(
        self, peer: Peer, task: RemoteTask, *, trace_id: str, traceparent: str | None = None
    ) -> None:
        """Ask the agent to cancel the task. What it answers is of no interest, unless an error."""
        headers = trace_headers(trace_id, {}, traceparent)
        async with self._about_task(peer, task, headers) as (exchange, line, bounds):
            method, params = CANCEL_TASK[line.generation], {"id": task.task_id}
            reply, request_id = await self._posted(exchange, line, method, params, bounds)
            await aside(reply, lambda: result_in(reply, request_id, line.secrets))

    async def look_up(self, peer: Peer, trail: Trail) -> tuple[AgentCard, Offer, httpx.URL]:
        """The card, the interface that would be spoken, and its URL; nothing is sent to it."""
        async with self._speaking(peer) as (exchange, secrets):
            return await self._resolved(exchange, peer, secrets, trail)

    async def read_card(self, peer: Peer, trail: Trail) -> AgentCard:
        """The card alone, whatever it offers."""
        async with self._speaking(peer) as (exchange, secrets):
            discovery = Discovery(exchange, self._cache, self._limits, self._clock, trail)
            return await _card_by(discovery, peer, secrets)

    @asynccontextmanager
    async def _speaking(self, peer: Peer) -> AsyncIterator[tuple[Exchanger, Secrets]]:
        """Whatever goes wrong in the block is an A2aError without tokens."""
        secrets = read_secrets(self._environ, peer.bearer_env)
        self._tokens |= secrets.tokens
        secrets = replace(secrets, others=self._tokens)
        try:
            async with exchanger(self._context or default_context(), self._limits) as exchange:
                yield exchange, secrets
        except A2aError as error:
            raise secrets.scrub_error(error) from None  # a cause could repeat what was scrubbed
        except HarnTemporalError:
            raise
        except Exception as error:  # noqa: BLE001 - an agent must not make a poll end otherwise,
            # or it would be tried again for ever, nor put its words into a history unscrubbed.
            raise AgentProtocolError(f"the hop broke off with {_kind_and_place(error)}") from None

    async def _resolved(
        self, exchange: Exchanger, peer: Peer, secrets: Secrets, trail: Trail | None = None
    ) -> tuple[AgentCard, Offer, httpx.URL]:
        discovery = Discovery(exchange, self._cache, self._limits, self._clock, trail or Trail())
        card = await _card_by(discovery, peer, secrets)
        offer = choose(card)
        url = checked(offer, peer.target, card.url, allow_cleartext=peer.allow_cleartext)
        return card, offer, url

    @asynccontextmanager
    async def _about_task(
        self, peer: Peer, task: RemoteTask, traced: Mapping[str, str]
    ) -> AsyncIterator[tuple[Exchanger, _Line, Bounds]]:
        generation: Generation = "1.0" if task.protocol_version.startswith("1") else "0.3"
        offer = Offer(
            url=task.rpc_url, transport="JSONRPC", version=task.protocol_version, source="task"
        )
        async with self._speaking(peer) as (exchange, secrets):
            # The task comes out of a history: the rules are asked again rather than trusted.
            url = checked(offer, peer.target, task.card_url, allow_cleartext=peer.allow_cleartext)
            line = _Line(url, generation, task.tenant, traced, secrets)
            yield exchange, line, Bounds(self._limits.control_s, self._limits.reply_bytes)

    async def _call(
        self,
        exchange: Exchanger,
        line: _Line,
        method: str,
        params: dict[str, Any],
        bounds: Bounds,
    ) -> Answer:
        """One JSON-RPC call, and what its result means; without tokens in it."""
        reply, request_id = await self._posted(exchange, line, method, params, bounds)
        return await aside(reply, lambda: understood(reply, request_id, line.secrets))

    async def _posted(
        self,
        exchange: Exchanger,
        line: _Line,
        method: str,
        params: dict[str, Any],
        bounds: Bounds,
    ) -> tuple[Reply, str]:
        """The reply to a JSON-RPC call, if it may hold an answer, and the id of the request."""
        if line.tenant is not None:
            params = params | {"tenant": line.tenant}
        request_id = str(uuid.uuid4())
        headers = {
            "content-type": "application/json",
            "accept": "application/json",
            "A2A-Version": VERSIONS[line.generation],
            **line.headers,
            **line.secrets.authorization(),
        }
        body = encode({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params})
        reply = await exchange.post(line.url, headers, body, bounds)
        try:
            check_status(reply, self._clock)
        except AgentHttpError as error:
            fuller = partial(with_rpc_text, error, reply, line.secrets)
            raise await aside(reply, fuller) from None
        check_content_type(reply, line.secrets)
        return reply, request_id

    def _forget_after(self, error: A2aError, peer: Peer) -> None:
        """The card may be out of date; an agent that is only busy says nothing against it."""
        if isinstance(error, AgentHttpError) and error.code in _BUSY:
            return
        if isinstance(error, AgentProtocolError | AgentHttpError | AgentRefusedError):
            self._cache.drop(peer.target)


def _task_at(peer: Peer, card: AgentCard, offer: Offer, url: httpx.URL) -> RemoteTask:
    """The task that is not there yet: everything but its id and state."""
    return RemoteTask(
        task_id="",
        state="",
        target_agent=peer.target.agent,
        rpc_url=str(url),
        card_url=card.url,
        agent_id=card.agent_id,
        protocol_version=VERSIONS[cast("Generation", offer.generation)],
        tenant=offer.tenant,
    )


def _hop_answer(answer: Answer, task: RemoteTask) -> HopAnswer:
    match answer:
        case Completed(result, task_id):
            ended = {"task_id": task_id or task.task_id, "state": "completed"}
            known = task.model_copy(update=ended) if ended["task_id"] else None
            return HopAnswer(result, known)
        case Pending(task_id, state, asked):
            task = task.model_copy(update={"task_id": task_id, "state": state})
            return HopAnswer(task_handle(task), task, pending=True, asked=asked)


def task_handle(task: RemoteTask) -> dict[str, Any]:
    """What a dispatch gets that does not follow its task."""
    return {"kind": HANDLE_KIND, **task.model_dump(exclude={"tenant"})}


def _kind_and_place(error: BaseException) -> str:
    """Not its message, which may hold what the agent said."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} at {Path(place.filename).name}:{place.lineno}"


async def _card_by(discovery: Discovery, peer: Peer, secrets: Secrets) -> AgentCard:
    return await discovery.card(
        peer.target,
        secrets,
        allow_cleartext=peer.allow_cleartext,
        bearer_env=peer.bearer_env,
    )

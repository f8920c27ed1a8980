"""The client: a message to an agent, questions about its task, and its cancellation."""

from __future__ import annotations

import json
import os
import ssl
import uuid
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, cast

import httpx

from harn_temporal.a2a.answers import HANDLE_KIND, Answer, Completed, Pending, read_answer
from harn_temporal.a2a.card_cache import CardCache
from harn_temporal.a2a.cards import AgentCard, Generation, Offer, checked, choose
from harn_temporal.a2a.connecting import default_context
from harn_temporal.a2a.credentials import Secrets, read_secrets
from harn_temporal.a2a.discovery import Discovery, Trail, check_status, decode_reply
from harn_temporal.a2a.exchange import Bounds, Exchanger, Reply, exchanger
from harn_temporal.a2a.failures import (
    A2aError,
    AgentHttpError,
    AgentProtocolError,
    AgentRefusedError,
    AgentRpcError,
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
from harn_temporal.a2a.target import AgentTarget
from harn_temporal.a2a.tracing import trace_headers
from harn_temporal.canonical import encode
from harn_temporal.clock import Clock, system_clock
from harn_temporal.contracts import RemoteTask

_BUSY = frozenset({429, 503})
_RPC_TEXT_LIMIT = 2_000


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

    async def send(
        self, peer: Peer, message: HopMessage, *, wait: bool, within_s: float
    ) -> HopAnswer:
        """Find the agent and give it the message. `within_s` bounds the call itself.

        With `wait` the agent is asked to answer when it is done; it may answer earlier.
        """
        async with self._speaking(peer) as (exchange, secrets):
            card, offer, url = await self._resolved(exchange, peer, secrets)
            generation = cast("Generation", offer.generation)  # choose gives none without
            event_headers = message.event.get("headers", {})
            line = _Line(
                url,
                generation,
                offer.tenant,
                trace_headers(message.trace_id, event_headers),
                secrets,
            )
            params = send_params(message, generation, secrets, wait=wait)
            bounds = Bounds(within_s, self._limits.reply_bytes)
            try:
                result = await self._call(exchange, line, SEND[generation], params, bounds)
                answer = read_answer(result)
            except A2aError as error:
                self._forget_after(error, peer)
                raise
            return _hop_answer(answer, _task_at(peer, card, offer, url))

    async def task(self, peer: Peer, task: RemoteTask, *, trace_id: str) -> HopAnswer:
        """How the task is doing. Raises TaskFailedError and the like where it ended badly."""
        answer = read_answer(await self._about_task(peer, task, GET_TASK, trace_id))
        return _hop_answer(answer, task)

    async def cancel(self, peer: Peer, task: RemoteTask, *, trace_id: str) -> None:
        """Ask the agent to cancel the task. What it answers is of no interest, unless an error."""
        await self._about_task(peer, task, CANCEL_TASK, trace_id)

    async def look_up(self, peer: Peer, trail: Trail) -> tuple[AgentCard, Offer, httpx.URL]:
        """The card, the interface that would be spoken, and its URL; nothing is sent to it."""
        async with self._speaking(peer) as (exchange, secrets):
            return await self._resolved(exchange, peer, secrets, trail)

    async def read_card(self, peer: Peer, trail: Trail) -> AgentCard:
        """The card alone, whatever it offers."""
        async with self._speaking(peer) as (exchange, secrets):
            discovery = Discovery(exchange, self._cache, self._limits, self._clock, trail)
            return await discovery.card(peer.target, secrets, allow_cleartext=peer.allow_cleartext)

    @asynccontextmanager
    async def _speaking(self, peer: Peer) -> AsyncIterator[tuple[Exchanger, Secrets]]:
        secrets = read_secrets(self._environ, peer.bearer_env)
        try:
            async with exchanger(self._context or default_context(), self._limits) as exchange:
                yield exchange, secrets
        except A2aError as error:
            raise secrets.scrub_error(error) from None  # a cause could repeat what was scrubbed

    async def _resolved(
        self, exchange: Exchanger, peer: Peer, secrets: Secrets, trail: Trail | None = None
    ) -> tuple[AgentCard, Offer, httpx.URL]:
        discovery = Discovery(exchange, self._cache, self._limits, self._clock, trail or Trail())
        card = await discovery.card(peer.target, secrets, allow_cleartext=peer.allow_cleartext)
        offer = choose(card)
        url = checked(offer, peer.target, card.url, allow_cleartext=peer.allow_cleartext)
        return card, offer, url

    async def _about_task(
        self, peer: Peer, task: RemoteTask, methods: Mapping[Generation, str], trace_id: str
    ) -> Any:
        generation: Generation = "1.0" if task.protocol_version.startswith("1") else "0.3"
        offer = Offer(
            url=task.rpc_url, transport="JSONRPC", version=task.protocol_version, source="task"
        )
        async with self._speaking(peer) as (exchange, secrets):
            # The task comes out of a history: the rules are asked again rather than trusted.
            url = checked(offer, peer.target, task.card_url, allow_cleartext=peer.allow_cleartext)
            line = _Line(url, generation, task.tenant, trace_headers(trace_id, {}), secrets)
            bounds = Bounds(self._limits.control_s, self._limits.reply_bytes)
            params = {"id": task.task_id}
            return await self._call(exchange, line, methods[generation], params, bounds)

    async def _call(
        self,
        exchange: Exchanger,
        line: _Line,
        method: str,
        params: dict[str, Any],
        bounds: Bounds,
    ) -> Any:
        """One JSON-RPC call; gives the result, without tokens in it."""
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
            raise _with_rpc_text(error, reply) from None
        _check_content_type(reply)
        return line.secrets.scrubbed(_result_in(decode_reply(reply), request_id))

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


def _result_in(envelope: Mapping[str, Any], request_id: str) -> Any:
    error = envelope.get("error")
    if error is not None:
        raise _rpc_error(error)
    if (envelope.get("id") or request_id) != request_id:
        raise AgentProtocolError("the agent answered a JSON-RPC request that was not sent")
    if "result" not in envelope:
        raise AgentProtocolError("the agent's answer is no JSON-RPC: neither result nor error")
    return envelope["result"]


def _rpc_error(error: Any) -> AgentRpcError:
    fields = error if isinstance(error, dict) else {}
    code = fields.get("code")
    text = str(fields.get("message") or json.dumps(error))[:_RPC_TEXT_LIMIT]
    number = code if isinstance(code, int) else None
    return AgentRpcError(f"the agent answers with JSON-RPC error {number}: {text}", code=number)


def _with_rpc_text(error: AgentHttpError, reply: Reply) -> AgentHttpError:
    """The error with what the agent says in its body, where that is JSON-RPC."""
    try:
        said = decode_reply(reply).get("error")
    except AgentProtocolError:
        return error
    if said is None:
        return error
    text = f"{error}: {_rpc_error(said)}"
    return AgentHttpError(text, code=error.code, retry_after_ms=error.retry_after_ms)


def _check_content_type(reply: Reply) -> None:
    kind = reply.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in {"", "application/json"} and not kind.endswith("+json"):
        raise AgentProtocolError(
            f"{reply.url.copy_with(query=None)} answers with content of type {kind[:50]!r}, "
            "which is no JSON"
        )

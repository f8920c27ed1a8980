"""Finding an agent's card at its well-known places, HTTPS first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

import httpx

from harn_temporal.a2a.card_cache import CardCache
from harn_temporal.a2a.cards import AgentCard, read_card
from harn_temporal.a2a.credentials import Secrets
from harn_temporal.a2a.exchange import Bounds, Exchanger, Reply, aside
from harn_temporal.a2a.failures import (
    A2aError,
    AgentHttpError,
    AgentProtocolError,
    AgentRefusedError,
    AgentTimeoutError,
    AgentUnreachableError,
    CertificateError,
    ConnectionRefusedByAgentError,
    DiscoveryError,
)
from harn_temporal.a2a.limits import HopLimits
from harn_temporal.a2a.retry_after import retry_after_ms
from harn_temporal.a2a.target import AgentTarget
from harn_temporal.canonical import PAYLOAD_DEPTH_LIMIT, clean, decode
from harn_temporal.clock import Clock
from harn_temporal.errors import NotJsonError

PATHS = (
    ".well-known/agent-card.json",
    ".well-known/a2a-agent",
    ".well-known/agent.json",
    "agent/card",
)

_OK = 200
_UNAUTHORIZED = 401
_REFUSALS = frozenset({401, 403})
_BUSY = frozenset({429, 503})


@dataclass
class Trail:
    """What was tried, in order: a URL, and what came of it (`found`, or the error's text)."""

    steps: list[tuple[str, str]] = field(default_factory=list)


@dataclass(frozen=True)
class Discovery:
    """Finds cards for hops over `exchanger`; `trail` is for people who ask why."""

    exchanger: Exchanger
    cache: CardCache
    limits: HopLimits
    clock: Clock
    trail: Trail

    async def card(
        self,
        target: AgentTarget,
        secrets: Secrets,
        *,
        allow_cleartext: bool,
        bearer_env: str | None,
    ) -> AgentCard:
        """Raises A2aError where there is no card, or nobody may be asked for one."""
        known = self.cache.get(target, allow_cleartext=allow_cleartext, bearer_env=bearer_env)
        if known is not None:
            return known
        try:
            card, headers = await self._over(target, "https", secrets)
        except A2aError as error:
            if not (allow_cleartext and _may_try_http(target, error)):
                raise
            card, headers = await self._over_http(target, secrets, error)
        self.cache.put(
            target, card, headers, allow_cleartext=allow_cleartext, bearer_env=bearer_env
        )
        return card

    async def _over_http(
        self, target: AgentTarget, secrets: Secrets, https_error: A2aError
    ) -> tuple[AgentCard, httpx.Headers]:
        try:
            return await self._over(target, "http", secrets)
        except ConnectionRefusedByAgentError:
            raise https_error from None  # says more: HTTPS was tried first
        except AgentProtocolError as error:
            raise error from https_error

    async def _over(
        self, target: AgentTarget, scheme: str, secrets: Secrets
    ) -> tuple[AgentCard, httpx.Headers]:
        problems: list[A2aError] = []
        for url in _places(target, scheme):
            try:
                reply = await self._fetch(url, secrets)
                card = await aside(reply, partial(_card_in, reply, secrets))
            except (AgentRefusedError, AgentTimeoutError, AgentUnreachableError) as error:
                self.trail.steps.append((str(url), str(error)))
                raise
            except AgentHttpError as error:
                self.trail.steps.append((str(url), str(error)))
                if error.code in _BUSY:
                    raise
                problems.append(error)
            except AgentProtocolError as error:
                self.trail.steps.append((str(url), str(error)))
                problems.append(error)
            else:
                self.trail.steps.append((str(url), "found"))
                return card, reply.headers
        raise DiscoveryError(
            f"no agent card at {target.authority}: " + "; ".join(map(str, problems))
        ) from problems[-1]

    async def _fetch(self, url: httpx.URL, secrets: Secrets) -> Reply:
        """The token is shown to an agent that asks for it, not to every server of the name."""
        bounds = Bounds(self.limits.card_s, self.limits.card_bytes)
        accept = {"accept": "application/json"}
        reply = await self.exchanger.get(url, accept, bounds)
        if reply.status == _UNAUTHORIZED and secrets.bearer:
            reply = await self.exchanger.get(url, accept | secrets.authorization(), bounds)
        check_status(reply, self.clock)
        return reply


def _card_in(reply: Reply, secrets: Secrets) -> AgentCard:
    return read_card(reply.url, secrets.scrubbed(decode_reply(reply)))


def check_status(reply: Reply, clock: Clock) -> None:
    """Raises AgentRefusedError or AgentHttpError unless the status is a plain success."""
    if reply.status == _OK:
        return
    text = f"{reply.url.copy_with(query=None)} answers HTTP {reply.status}"
    if reply.status in _REFUSALS:
        raise AgentRefusedError(text)
    wait = reply.headers.get("retry-after") if reply.status in _BUSY else None
    raise AgentHttpError(text, code=reply.status, retry_after_ms=retry_after_ms(wait, clock))


def decode_reply(reply: Reply) -> dict[str, Any]:
    """The JSON object in a reply; AgentProtocolError where there is none that could be recorded."""
    try:
        value = clean(decode(reply.body), depth_limit=PAYLOAD_DEPTH_LIMIT)
    except NotJsonError as error:
        raise AgentProtocolError(f"{reply.url.copy_with(query=None)} sent {error}") from error
    if not isinstance(value, dict):
        raise AgentProtocolError(f"{reply.url.copy_with(query=None)} sent no JSON object")
    return cast("dict[str, Any]", value)


def _places(target: AgentTarget, scheme: str) -> Iterator[httpx.URL]:
    base = target.base(scheme)
    yield from (base.join(path) for path in PATHS)


def _may_try_http(target: AgentTarget, error: A2aError) -> bool:
    """Whether HTTPS failed in a way that lets a binding with allow_cleartext go on with HTTP.

    A handshake that broke must not downgrade, or whoever breaks it reads along. On loopback there
    is nobody in between; but a server with a certificate for another name is there to be noticed.
    """
    if target.is_loopback:
        return not isinstance(error, AgentRefusedError | CertificateError)
    return isinstance(error, ConnectionRefusedByAgentError)

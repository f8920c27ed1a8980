"""One request and its answer, within bounds of time, size and place."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import TypeVar

import httpx

from harn_temporal.a2a.connecting import (
    AllRefusedError,
    CarefulTransport,
    ForbiddenAddressError,
    caused_by,
)
from harn_temporal.a2a.failures import (
    A2aError,
    AgentProtocolError,
    AgentRefusedError,
    AgentTimeoutError,
    AgentUnreachableError,
    CertificateError,
    ConnectionRefusedByAgentError,
)
from harn_temporal.a2a.limits import HopLimits
from harn_temporal.a2a.target import same_authority

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_SEE_OTHER = 303
_MOST_PIECES = 65_536
"""Of one answer: each costs the same, so eight million of one byte would keep a CPU for minutes."""


@dataclass(frozen=True)
class Bounds:
    within_s: float
    max_bytes: int


@dataclass(frozen=True)
class Reply:
    url: httpx.URL
    status: int
    headers: httpx.Headers
    body: bytes


_LARGE_BYTES = 128 * 1024
_T = TypeVar("_T")


async def aside(reply: Reply, read: Callable[[], _T]) -> _T:
    """What `read` makes of a reply: in a thread where that is large.

    Eight MiB of JSON take seconds, and a worker's event loop has heartbeats to send meanwhile.
    """
    return await asyncio.to_thread(read) if len(reply.body) > _LARGE_BYTES else read()


class Exchanger:
    """Sends requests over connections of its own. Made by `exchanger`, for one hop."""

    def __init__(self, client: httpx.AsyncClient, limits: HopLimits) -> None:
        self._client = client
        self._limits = limits

    async def get(self, url: httpx.URL, headers: Mapping[str, str], bounds: Bounds) -> Reply:
        return await self._bounded(self._client.build_request("GET", url, headers=headers), bounds)

    async def post(
        self, url: httpx.URL, headers: Mapping[str, str], content: bytes, bounds: Bounds
    ) -> Reply:
        request = self._client.build_request("POST", url, headers=headers, content=content)
        return await self._bounded(request, bounds)

    async def _bounded(self, request: httpx.Request, bounds: Bounds) -> Reply:
        """Raises A2aError for everything that is no complete answer."""
        try:
            async with asyncio.timeout(bounds.within_s):
                return await self._followed(request, bounds.max_bytes)
        except TimeoutError as error:
            raise AgentTimeoutError(
                f"{_place(request.url)} did not answer within {bounds.within_s:g} s"
            ) from error
        except httpx.HTTPError as error:
            raise _told(error, request.url) from error
        except httpx.InvalidURL as error:
            raise AgentProtocolError(f"{_place(request.url)} sent an address: {error}") from error

    async def _followed(self, request: httpx.Request, max_bytes: int) -> Reply:
        for _ in range(self._limits.redirects + 1):
            reply = await self._one(request, max_bytes)
            if reply.status not in _REDIRECTS or "location" not in reply.headers:
                return reply
            request = self._redirected(request, reply)
        raise AgentProtocolError(
            f"{_place(request.url)} redirects more than {self._limits.redirects} times"
        )

    def _redirected(self, request: httpx.Request, reply: Reply) -> httpx.Request:
        """The request once more at the place that the reply names, if that is no other place."""
        location = request.url.join(reply.headers["location"])
        same = location.scheme == request.url.scheme and same_authority(location, request.url)
        if not same:
            raise AgentRefusedError(
                f"{_place(request.url)} redirects to {_place(location)}; redirects are followed "
                "only within the scheme and authority that was asked for"
            )
        if request.method != "GET" and reply.status == _SEE_OTHER:
            raise AgentProtocolError(f"{_place(request.url)} answers a message with a redirect")
        return self._client.build_request(
            request.method, location, headers=request.headers, content=request.content or None
        )

    async def _one(self, request: httpx.Request, max_bytes: int) -> Reply:
        response = await self._client.send(request, stream=True)
        try:
            encoding = response.headers.get("content-encoding", "identity").strip().lower()
            if encoding != "identity":  # it was not asked for, and it hides the size
                raise AgentProtocolError(f"{_place(request.url)} sent a body encoded as {encoding}")
            body, pieces = bytearray(), 0
            async for chunk in response.aiter_raw():
                body += chunk
                pieces += 1
                if pieces > _MOST_PIECES:
                    raise AgentProtocolError(
                        f"{_place(request.url)} sent more than {_MOST_PIECES} pieces"
                    )
                if len(body) > max_bytes:
                    raise AgentProtocolError(
                        f"{_place(request.url)} sent more than {max_bytes} bytes"
                    )
            return Reply(request.url, response.status_code, response.headers, bytes(body))
        finally:
            await response.aclose()


@asynccontextmanager
async def exchanger(context: ssl.SSLContext, limits: HopLimits) -> AsyncIterator[Exchanger]:
    """Connections for one hop: nothing is shared with another, and no cookie is kept."""
    no_cookies = CookieJar(policy=DefaultCookiePolicy(allowed_domains=[]))
    async with httpx.AsyncClient(
        transport=CarefulTransport(context),
        timeout=httpx.Timeout(None, connect=limits.connect_s),
        follow_redirects=False,
        trust_env=False,
        cookies=no_cookies,
        headers={"accept-encoding": "identity", "user-agent": "harn-temporal"},
    ) as client:
        yield Exchanger(client, limits)


def _told(error: httpx.HTTPError, url: httpx.URL) -> A2aError:
    """An error of the network as ours, by type."""
    place = _place(url)
    if isinstance(error, httpx.TimeoutException):
        return AgentTimeoutError(f"no connection to {place} in time")
    if caused_by(error, ForbiddenAddressError):
        return AgentRefusedError(str(error))
    if caused_by(error, AllRefusedError):
        return ConnectionRefusedByAgentError(f"nothing listens at {place}: connection refused")
    if caused_by(error, ssl.SSLCertVerificationError):
        return CertificateError(f"{place} has no valid certificate: {error}")
    if isinstance(error, httpx.RemoteProtocolError):
        return AgentProtocolError(f"{place} does not speak HTTP: {error}")
    text = f"no answer from {place}: {str(error) or type(error).__name__}"
    if caused_by(error, ssl.SSLError):
        text += ". An agent that speaks HTTP only needs a binding with allow_cleartext = true"
    return AgentUnreachableError(text)


def _place(url: httpx.URL) -> str:
    """A URL for people, without what may be secret in it."""
    return str(url.copy_with(userinfo=b"", query=None, fragment=None))

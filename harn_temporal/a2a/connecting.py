"""The transport under every hop: no proxy, no retry, and no connection to what a name hides."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import socket
import ssl
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import httpcore
import httpx

for _library in ("httpx", "httpcore"):
    # They log what a peer sends: reasons and headers, in which it may repeat our token.
    logging.getLogger(_library).setLevel(logging.WARNING)

FORBIDDEN = tuple(
    ipaddress.ip_network(network)
    for network in (
        "169.254.0.0/16",
        "fe80::/10",
        "100.100.100.200/32",
        "168.63.129.16/32",
        "192.0.0.192/32",
        "fd00:ec2::254/128",
        "fd20:ce::254/128",
    )
)
"""Link-local, and the metadata services of clouds."""

_NAT64 = ipaddress.ip_network("64:ff9b::/96")


class ForbiddenAddressError(httpcore.ConnectError):
    """A host's name resolved to an address at which no agent lives."""


class AllRefusedError(httpcore.ConnectError):
    """Every address of the host refused the connection."""


class CarefulBackend(httpcore.AsyncNetworkBackend):
    """Connects to the very addresses that it has checked, so a name cannot change in between."""

    def __init__(self) -> None:
        self._inner = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the base class's shape
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        failures: list[httpcore.ConnectError | httpcore.ConnectTimeout] = []
        addresses = await _addresses(host, port)
        for address in addresses:
            try:
                return await self._inner.connect_tcp(
                    address,
                    port,
                    timeout=timeout,
                    local_address=local_address,
                    socket_options=socket_options,
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failures.append(error)
        if all(caused_by(error, ConnectionRefusedError) for error in failures):
            raise AllRefusedError(f"{host} refused the connection to port {port}") from failures[-1]
        raise failures[-1]

    async def sleep(self, seconds: float) -> None:
        await self._inner.sleep(seconds)


class CarefulTransport(httpx.AsyncHTTPTransport):
    def __init__(self, context: ssl.SSLContext) -> None:
        super().__init__(verify=context, trust_env=False, retries=0)
        # httpx has no parameter for the backend; the pool is all that its transport is made of.
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=context, network_backend=CarefulBackend(), retries=0, http2=False
        )


@lru_cache(maxsize=1)
def default_context() -> ssl.SSLContext:
    """Certificates are checked against SSL_CERT_FILE or SSL_CERT_DIR, else certifi's list."""
    return httpx.create_ssl_context()


def caused_by(error: BaseException | None, kind: type[BaseException]) -> bool:
    """Whether `error` or a cause of it is of `kind`; of a group, whether all of its members are."""
    while error is not None:
        if isinstance(error, kind):
            return True
        if isinstance(error, BaseExceptionGroup):
            return all(caused_by(member, kind) for member in error.exceptions)
        error = error.__cause__ or error.__context__
    return False


async def _addresses(host: str, port: int) -> list[str]:
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise httpcore.ConnectError(f"the name {host} does not resolve: {error}") from error
    addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
    for address in addresses:
        if address != host and _is_forbidden(address):
            raise ForbiddenAddressError(
                f"the name {host} resolves to {address}, where no agent can be"
            )
    return addresses


def _is_forbidden(address: str) -> bool:
    parsed = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(parsed, ipaddress.IPv6Address):
        parsed = _embedded(parsed) or parsed
    return any(parsed in network for network in FORBIDDEN)


def _embedded(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """The IPv4 address that an IPv6 one leads to: mapped, by 6to4 or by NAT64."""
    if address in _NAT64:
        return ipaddress.IPv4Address(address.packed[-4:])
    return address.ipv4_mapped or address.sixtofour

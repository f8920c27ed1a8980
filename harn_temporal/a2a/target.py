"""The agent that was asked for, and which URLs are its own."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import Self

import httpx

from harn_temporal.action_graph import target_agent
from harn_temporal.errors import UsageError

SCHEME = "a2a://"
LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
"""Equal among themselves. Nothing else is loopback, however it resolves."""


@dataclass(frozen=True)
class AgentTarget:
    """`a2a://host[:port]/path`. The path is a label for the agent, never a part of a URL."""

    uri: str
    authority: str
    """`host[:port]`, as the manifest has it."""
    agent: str
    """The label `target_agent`: the path, or the authority where there is none."""

    @classmethod
    def parse(cls, uri: str) -> Self:
        """Raises UsageError for anything that is not `a2a://host[:port][/path]`."""
        authority = uri.removeprefix(SCHEME).partition("/")[0]
        try:
            url = httpx.URL(f"https://{authority}/")
            host = url.host  # decodes IDNA
        except (httpx.InvalidURL, UnicodeError):
            url, host = httpx.URL(), ""
        plain = not (url.userinfo or url.query or url.fragment) and "@" not in authority
        if not uri.startswith(SCHEME) or not host or url.path != "/" or not plain:
            raise UsageError(f"{uri!r} is no A2A target; write a2a://host[:port]/path")
        return cls(uri=uri, authority=authority, agent=target_agent(uri))

    @property
    def is_loopback(self) -> bool:
        return _host(self.base("https")) == _LOOPBACK

    def base(self, scheme: str) -> httpx.URL:
        return httpx.URL(f"{scheme}://{self.authority}/")

    def owns(self, url: httpx.URL) -> bool:
        """Whether `url` has the authority that was asked for. The port counts."""
        return _is_web(url) and same_authority(url, self.base(url.scheme))


def same_authority(one: httpx.URL, other: httpx.URL) -> bool:
    """Equal hosts and ports. A user in a URL makes it nobody's: it serves to disguise a host."""
    if one.userinfo or other.userinfo:
        return False
    return (_host(one), _port(one)) == (_host(other), _port(other))


_LOOPBACK = "loopback"
_DEFAULT_PORTS = {"http": 80, "https": 443}


def _is_web(url: httpx.URL) -> bool:
    return url.scheme in _DEFAULT_PORTS and bool(url.raw_host)


def _host(url: httpx.URL) -> str:
    """The host as it is connected to, in one spelling; the raw host is lower-case and ASCII."""
    host = url.raw_host.decode("ascii")
    if ":" in host:
        try:
            host = str(ipaddress.IPv6Address(host))
        except ValueError:
            return host
    return _LOOPBACK if host in LOOPBACK_NAMES else host


def _port(url: httpx.URL) -> int | None:
    return _DEFAULT_PORTS.get(url.scheme) if url.port is None else url.port

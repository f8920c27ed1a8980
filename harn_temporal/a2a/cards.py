"""Agent cards: what an agent offers, and which of it is spoken here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import httpx

from harn_temporal.a2a.failures import AgentRefusedError, DiscoveryError
from harn_temporal.a2a.target import AgentTarget

Generation = Literal["1.0", "0.3"]

_OFFER_LIMIT = 20
_TEXT_LIMIT = 100
_NAME_LIMIT = 1_000
_EXACT_LIMIT = 2_000
"""Of what goes back to the agent as it is, and into a handle and a history: it cannot be cut."""


@dataclass(frozen=True)
class Offer:
    """One interface of a card. `generation` is None where it is not spoken here."""

    url: str
    transport: str
    version: str
    source: str
    """The key of the card that it comes from."""
    generation: Generation | None = None
    tenant: str | None = None
    """What protocol 1.0 wants back in every call, where the interface names one."""

    def __str__(self) -> str:
        transport, version = self.transport or "no transport", self.version or "no version"
        return f"{transport} {version} at {self.url[:_TEXT_LIMIT] or 'no URL'}"


@dataclass(frozen=True)
class AgentCard:
    """`url` is where the card was read. `agent_id` is its `id`, else its name."""

    url: str
    name: str
    agent_id: str
    description: str
    version: str
    skills: tuple[str, ...]
    offers: tuple[Offer, ...]
    """In the order in which they are taken: 1.0 first."""


def read_card(url: httpx.URL, values: Mapping[str, Any]) -> AgentCard:
    """A card from its JSON. Fields of the wrong type count as absent."""
    offers = sorted(_offers(values), key=lambda offer: _RANK[offer.generation])
    skills = (_text(skill, "name") or _text(skill, "id") for skill in _tables(values, "skills"))
    return AgentCard(
        url=str(url),
        name=_text(values, "name")[:_NAME_LIMIT],
        agent_id=(_text(values, "id") or _text(values, "name"))[:_NAME_LIMIT],
        description=_text(values, "description")[:_NAME_LIMIT],
        version=_text(values, "version")[:_TEXT_LIMIT],
        skills=tuple(skill[:_NAME_LIMIT] for skill in skills if skill),
        offers=tuple(offers[:_OFFER_LIMIT]),
    )


def choose(card: AgentCard) -> Offer:
    """The interface to speak. Raises DiscoveryError that names what the card offers."""
    chosen = next((offer for offer in card.offers if offer.generation), None)
    if chosen is not None:
        return chosen
    offered = "; ".join(map(str, card.offers)) or "no interface"
    raise DiscoveryError(
        f"the agent card at {card.url} offers nothing that is spoken here (JSONRPC of protocol "
        f"1.x or 0.3.x); it offers: {offered}"
    )


def checked(
    offer: Offer, target: AgentTarget, card_url: str, *, allow_cleartext: bool
) -> httpx.URL:
    """The URL of an interface, if it may be called. Raises AgentRefusedError, or DiscoveryError."""
    for what, text in (("a URL", offer.url), ("a tenant", offer.tenant or "")):
        if len(text) > _EXACT_LIMIT:
            raise DiscoveryError(
                f"the agent card at {card_url} has {what} of more than {_EXACT_LIMIT} characters"
            )
    try:
        url = httpx.URL(offer.url)
    except httpx.InvalidURL as error:
        raise DiscoveryError(f"the agent card at {card_url} has a broken URL: {error}") from error
    if not target.owns(url):
        raise AgentRefusedError(
            f"the agent card at {card_url} points to {_shown(url)}, which is not the authority "
            f"{target.authority} that was asked for"
        )
    if url.scheme == "https":
        return url
    if not allow_cleartext:
        raise AgentRefusedError(
            f"the agent card at {card_url} points to {_shown(url)}, and cleartext HTTP is refused "
            "unless the binding says allow_cleartext = true"
        )
    if httpx.URL(card_url).scheme == "https" and not target.is_loopback:
        raise AgentRefusedError(
            f"the agent card at {card_url} came over HTTPS and points to {_shown(url)}: what is "
            "reached over HTTPS is not downgraded to cleartext"
        )
    return url


_RANK: Mapping[Generation | None, int] = {"1.0": 0, "0.3": 1, None: 2}


def _offers(values: Mapping[str, Any]) -> Iterator[Offer]:
    """Every interface, those of protocol 0.3 in the order in which they are tried."""
    supported = list(_tables(values, "supportedInterfaces"))
    yield from (_supported(entry) for entry in supported if not _is_legacy(entry))
    version = _text(values, "protocolVersion")[:_TEXT_LIMIT]
    legacy: Generation | None = "0.3" if _speaks(version, "0.3") else None
    if _text(values, "url"):
        # 0.3 says that a card without preferredTransport means JSONRPC.
        transport = _text(values, "preferredTransport")[:_TEXT_LIMIT] or "JSONRPC"
        yield Offer(
            url=_exact(values, "url"),
            transport=transport,
            version=version,
            source="url",
            generation=legacy if _is_jsonrpc(transport) else None,
        )
    for entry in _tables(values, "additionalInterfaces"):
        transport = _text(entry, "transport")[:_TEXT_LIMIT]
        yield Offer(
            url=_exact(entry, "url"),
            transport=transport,
            version=version,
            source="additionalInterfaces",
            generation=legacy if _is_jsonrpc(transport) else None,
        )
    yield from (_supported(entry) for entry in supported if _is_legacy(entry))


def _supported(entry: Mapping[str, Any]) -> Offer:
    version = _text(entry, "protocolVersion")[:_TEXT_LIMIT]
    transport = _text(entry, "protocolBinding")[:_TEXT_LIMIT]
    generation: Generation | None = None
    if _is_jsonrpc(transport):
        generation = "1.0" if _speaks(version, "1") else "0.3" if _speaks(version, "0.3") else None
    return Offer(
        url=_exact(entry, "url"),
        transport=transport,
        version=version,
        source="supportedInterfaces",
        generation=generation,
        tenant=_exact(entry, "tenant") or None,
    )


def _is_legacy(entry: Mapping[str, Any]) -> bool:
    return _speaks(_text(entry, "protocolVersion"), "0.3")


def _is_jsonrpc(transport: str) -> bool:
    return transport.upper() == "JSONRPC"


def _speaks(version: str, family: str) -> bool:
    return version == family or version.startswith(f"{family}.")


def _tables(values: Mapping[str, Any], key: str) -> Iterator[Mapping[str, Any]]:
    entries = values.get(key)
    if isinstance(entries, list):
        yield from (entry for entry in entries if isinstance(entry, dict))


def _text(values: Mapping[str, Any], key: str) -> str:
    value = values.get(key)
    return value if isinstance(value, str) else ""


def _exact(values: Mapping[str, Any], key: str) -> str:
    """Just enough of the text to see that it is too long."""
    return _text(values, key)[: _EXACT_LIMIT + 1]


def _shown(url: httpx.URL) -> str:
    return str(url.copy_with(userinfo=b"", query=None, fragment=None))[:_TEXT_LIMIT]

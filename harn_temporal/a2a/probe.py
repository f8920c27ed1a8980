"""What an agent offers, what would be spoken, and why something is refused. Sends no message."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from harn_temporal.a2a.cards import AgentCard, Offer, checked, choose
from harn_temporal.a2a.client import A2aClient, Peer
from harn_temporal.a2a.discovery import Trail
from harn_temporal.a2a.failures import A2aError
from harn_temporal.a2a.messages import SEND, VERSIONS

SPOKEN = "would be spoken"
ALSO = "could be spoken; the one above goes first"
BEHIND = "could be spoken, but the one that goes first is refused"
NOT_SPOKEN = "not spoken here"


@dataclass(frozen=True)
class ProbeReport:
    """`refused` is why no dispatch would get through; None where one would."""

    target: str
    tried: Sequence[tuple[str, str]]
    """URLs at which a card was looked for, each with `found` or what was wrong."""
    card: AgentCard | None = None
    offers: Sequence[tuple[Offer, str]] = ()
    """Interfaces of the card, each with what would become of it."""
    spoken: Offer | None = None
    refused: str | None = None

    def to_json(self) -> dict[str, Any]:
        card, spoken = self.card, self.spoken
        return {
            "target": self.target,
            "ok": self.refused is None,
            "tried": [{"url": url, "outcome": outcome} for url, outcome in self.tried],
            "card": None
            if card is None
            else {
                "url": card.url,
                "name": card.name,
                "agent_id": card.agent_id,
                "description": card.description,
                "version": card.version,
                "skills": list(card.skills),
            },
            "interfaces": [
                {
                    "url": offer.url,
                    "transport": offer.transport,
                    "protocol_version": offer.version,
                    "source": offer.source,
                    "verdict": verdict,
                }
                for offer, verdict in self.offers
            ],
            "spoken": None
            if spoken is None or spoken.generation is None
            else {
                "url": spoken.url,
                "protocol_version": VERSIONS[spoken.generation],
                "method": SEND[spoken.generation],
            },
            "refused": self.refused,
        }


async def probe(client: A2aClient, peer: Peer) -> ProbeReport:
    """Look for the agent's card and weigh what it offers. Never raises A2aError."""
    trail = Trail()
    target = peer.target.uri
    try:
        card = await client.read_card(peer, trail)
    except A2aError as error:
        return ProbeReport(target, trail.steps, refused=str(error))
    spoken, refused = None, None
    try:
        chosen = choose(card)
        checked(chosen, peer.target, card.url, allow_cleartext=peer.allow_cleartext)
        spoken = chosen
    except A2aError as error:
        refused = str(error)
    offers = [(offer, _verdict(offer, spoken, card, peer)) for offer in card.offers]
    return ProbeReport(target, trail.steps, card, offers, spoken, refused)


def _verdict(offer: Offer, spoken: Offer | None, card: AgentCard, peer: Peer) -> str:
    if offer is spoken:
        return SPOKEN
    if offer.generation is None:
        return NOT_SPOKEN
    try:
        checked(offer, peer.target, card.url, allow_cleartext=peer.allow_cleartext)
    except A2aError as error:
        return f"refused: {error}"
    return BEHIND if spoken is None else ALSO

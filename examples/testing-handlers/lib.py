"""Handlers of the example, and the service that one of them calls."""

from harn_temporal import Denied, HandlerContext, TriggerEvent

LIMIT_CENTS = 50_000


class Billing:
    """Stands for the client of a service; tests put another in its place."""

    async def refund(self, ticket: str, cents: int) -> str:
        raise ConnectionError(f"there is no billing service here to refund {ticket} ({cents})")


billing = Billing()


def is_from_a_customer(event: TriggerEvent) -> bool:
    return event.raw["author"]["role"] == "customer"


def greet(event: TriggerEvent) -> dict:
    return {"ticket": event.raw["ticket"], "reply": f"Hello {event.raw['author']['name']}"}


async def refund(event: TriggerEvent, context: HandlerContext) -> dict:
    cents = event.raw["cents"]
    if cents > LIMIT_CENTS:
        raise Denied(f"{cents} cents need a person's consent")
    context.log.info("refunding %d cents, attempt %d", cents, context.attempt)
    return {"receipt": await billing.refund(event.raw["ticket"], cents)}

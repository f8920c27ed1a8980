"""The RFC 8693 actor chain: on whose behalf a dispatch runs, the current actor outermost."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from harn_temporal.a2a.failures import AgentRefusedError
from harn_temporal.canonical import clean
from harn_temporal.errors import NotJsonError


class Actor(BaseModel):
    """`act` is who this actor acts for; what else the chain says is kept."""

    model_config = ConfigDict(frozen=True, extra="allow")

    sub: str
    scopes: tuple[str, ...] | None = None
    act: Actor | None = None
    may_act: dict[str, JsonValue] | None = None


def checked_chain(value: Any) -> dict[str, Any] | None:
    """The chain as it is sent, or None where there is none.

    Raises AgentRefusedError for one that is malformed: an agent must not take it for another.
    """
    if value is None:
        return None
    try:
        chain = Actor.model_validate(clean(value))
    except (ValidationError, NotJsonError) as error:
        raise AgentRefusedError(
            'the actor chain of this dispatch is malformed; it is {"sub", "scopes"?, "act"?, '
            '"may_act"?}, the current actor outermost'
        ) from error
    return chain.model_dump(mode="json", exclude_none=True)

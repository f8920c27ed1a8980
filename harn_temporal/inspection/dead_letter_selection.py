"""Which dead letters are meant, and whether the store knows the names that say so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args

from harn_temporal.contracts import ErrorClass
from harn_temporal.errors import NotFoundError
from harn_temporal.eventlog.dead_letters import StoredDeadLetter
from harn_temporal.eventlog.log import Reader
from harn_temporal.eventlog.topics import tenant_topic
from harn_temporal.unknown_names import unknown_name


@dataclass(frozen=True, slots=True)
class Selection:
    """Which dead letters are meant; None means any. Ages are in milliseconds."""

    trigger_id: str | None = None
    provider: str | None = None
    error_class: str | None = None
    tenant_id: str | None = None
    state: str | None = None
    older_than_ms: int | None = None
    newer_than_ms: int | None = None

    @property
    def text(self) -> str | None:
        """The filters as audits tell of them, None where there are none; the state is not one."""
        named = {
            "trigger": self.trigger_id,
            "provider": self.provider,
            "error_class": self.error_class,
            "tenant": self.tenant_id,
            "older_than_ms": self.older_than_ms,
            "newer_than_ms": self.newer_than_ms,
        }
        given = [f"{name}={value}" for name, value in named.items() if value is not None]
        return " ".join(given) or None

    def admits(self, letter: StoredDeadLetter, now_ms: int) -> bool:
        age = now_ms - letter.moved_at_ms
        wanted = (
            (self.trigger_id, letter.trigger_id),
            (self.provider, letter.provider),
            (self.error_class, letter.error_class),
            (self.tenant_id, letter.tenant_id),
            (self.state, letter.state),
        )
        return (
            all(want is None or want == has for want, has in wanted)
            and (self.older_than_ms is None or age > self.older_than_ms)
            and (self.newer_than_ms is None or age < self.newer_than_ms)
        )


def check_names(reader: Reader, wanted: Selection, letters: Sequence[StoredDeadLetter]) -> None:
    """Raises NotFoundError for a name that neither a dead letter nor the store knows.

    A trigger that is no longer in the manifest stays known, and so does a tenant for as long as
    the log has a topic of its own.
    """
    bindings = reader.bindings.states()
    of_letters = (
        ("trigger", wanted.trigger_id, {each.trigger_id for each in letters}),
        ("provider", wanted.provider, {each.provider for each in letters}),
        ("error class", wanted.error_class, {each.error_class for each in letters}),
        ("tenant", wanted.tenant_id, {each.tenant_id for each in letters if each.tenant_id}),
    )
    elsewhere = {
        "trigger": {each.trigger_id for each in bindings},
        "provider": {each.provider for each in bindings},
        "error class": set(get_args(ErrorClass)),
    }
    for what, name, found in of_letters:
        known = found | elsewhere.get(what, set())
        if name is None or name in known:
            continue
        if what == "tenant" and reader.topics(tenant_topic(name, "")):
            continue
        raise NotFoundError(unknown_name(what, name, known))

"""The bindings that a store knows: their versions, states and definitions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from harn_temporal.canonical import clean, clean_text, decode, encode
from harn_temporal.errors import NotJsonError
from harn_temporal.eventlog import topics
from harn_temporal.eventlog.fields import Malformed, integer, mapping, text
from harn_temporal.eventlog.records import Record
from harn_temporal.eventlog.statements import Statements


@dataclass(frozen=True, slots=True)
class StoredBinding:
    """A version of a trigger's binding. `package` is empty where Harn registered it."""

    package: str
    trigger_id: str
    version: int
    binding_key: str
    provider: str
    kind: str
    handler_kind: str
    fingerprint: str
    state: str
    changed_at_ms: int


class BindingsTables:
    """The bindings as they stand in a transaction."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements

    def version(self, package: str, trigger_id: str, fingerprint: str) -> int | None:
        """The newest version of this package's trigger that has this definition."""
        rows = self._statements.rows(
            "bindings.version",
            package=clean_text(package),
            trigger_id=clean_text(trigger_id),
            fingerprint=clean_text(fingerprint),
        )
        version: int | None = rows[0][0]
        return version

    def highest(self, trigger_id: str) -> int:
        """The highest version of a trigger id over all packages, 0 where there is none."""
        rows = self._statements.rows("bindings.highest", trigger_id=clean_text(trigger_id))
        return int(rows[0][0])

    def states(self) -> list[StoredBinding]:
        """Every version of every trigger, by package, trigger and version."""
        return [StoredBinding(*row) for row in self._statements.rows("bindings.all")]

    def get(self, trigger_id: str, version: int) -> StoredBinding | None:
        rows = self._statements.rows(
            "bindings.one", trigger_id=clean_text(trigger_id), version=version
        )
        return StoredBinding(*rows[0]) if rows else None

    def definition(self, trigger_id: str, version: int) -> dict[str, Any] | None:
        """The binding as it was registered, as JSON; None where Harn registered it."""
        rows = self._statements.rows(
            "bindings.definition", trigger_id=clean_text(trigger_id), version=version
        )
        found: dict[str, Any] | None = decode(rows[0][0]) if rows else None
        return found


class BindingsProjection:
    name = "bindings"
    version = 1

    def folds(self, topic: str) -> bool:
        return topic == topics.TRIGGERS_LIFECYCLE

    def fold(self, statements: Statements, record: Record) -> None:
        if record.kind != "state_transition":
            return
        payload = mapping(record)
        statements.run(
            "bindings.move",
            package=text(payload, "package", ""),
            trigger_id=text(payload, "id"),
            version=integer(payload, "version"),
            binding_key=text(payload, "binding_key"),
            provider=text(payload, "provider"),
            kind=text(payload, "kind"),
            handler_kind=text(payload, "handler_kind"),
            fingerprint=text(payload, "definition_fingerprint"),
            state=text(payload, "to_state"),
            changed_at_ms=record.occurred_at_ms,
            event_id=record.event_id,
            definition=_definition(payload),
        )


def _definition(payload: dict[str, Any]) -> str:
    definition = payload.get("definition")
    if definition is None:
        return ""
    if not isinstance(definition, dict):
        raise Malformed("has a definition that is no JSON object")
    try:
        return encode(clean(definition)).decode()
    except NotJsonError as error:
        raise Malformed(f"has a definition that cannot be kept: {error}") from error

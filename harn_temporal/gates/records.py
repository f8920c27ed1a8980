"""The records of gates: Harn's kinds and payloads, with what ours need beside them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from harn_temporal.eventlog.gate_tables import StoredGate
from harn_temporal.eventlog.records import Append, Record
from harn_temporal.eventlog.topics import gate_topic
from harn_temporal.gates.decisions import Permit, Wake
from harn_temporal.gates.identity import GateKey
from harn_temporal.gates.models import GateKind
from harn_temporal.headers import EXPIRES_AT_MS, GATE_ID, HOLDER, PERMIT_ID

ABANDONED = "gate_abandoned"
RENEWED = "gate_renewed"
_GRANTS = frozenset({"concurrency_acquired", "debounce_selected", "batch_dispatched"})


@dataclass(frozen=True, slots=True)
class Place:
    """A gate as its records name it."""

    kind: GateKind
    name: str
    gate_id: str
    binding_key: str

    @property
    def topic(self) -> str:
        return gate_topic(self.kind, self.name)

    def key(self, holder: str, what: str) -> str:
        """The idempotency key of what happens to a holder once."""
        return f"gate/{self.kind}/{self.gate_id}/{holder}/{what}"

    def record(
        self,
        kind: str,
        holder: str,
        permit_id: str,
        payload: dict[str, Any],
        *,
        expires_at_ms: int | None = None,
    ) -> Append:
        """`payload` is what stands beside `gate`."""
        headers = {HOLDER: holder, PERMIT_ID: permit_id, GATE_ID: self.gate_id}
        if expires_at_ms is not None:
            headers[EXPIRES_AT_MS] = str(expires_at_ms)
        whole = {"gate": self.name, "binding_key": self.binding_key, **payload}
        return Append(self.topic, kind, whole, headers)

    def permit(self, permit_id: str, arrived_at_ms: int, expires_at_ms: int) -> Permit:
        return Permit(
            kind=self.kind,
            gate=self.name,
            gate_id=self.gate_id,
            permit_id=permit_id,
            arrived_at_ms=arrived_at_ms,
            expires_at_ms=expires_at_ms,
        )

    def wake(self, holder: str, *, granted: bool) -> Wake:
        return Wake(holder=holder, kind=self.kind, gate=self.name, granted=granted)


def place_of(key: GateKey) -> Place:
    return Place(key.kind, key.name, key.gate_id, key.binding_key)


def stored_place(gate: StoredGate) -> Place:
    return Place(_kind(gate.kind), gate.name, gate.gate_id, gate.binding_key)


def wakes_in(records: tuple[Record, ...], asker: str | None = None) -> tuple[Wake, ...]:
    """Whom records let go on, apart from the one who asks."""
    return tuple(
        Wake(
            holder=record.headers[HOLDER],
            kind=_kind(record.topic.split(".", 2)[1]),
            gate=record.payload["gate"],
            granted=True,
        )
        for record in records
        if record.kind in _GRANTS and record.headers.get(HOLDER) != asker
    )


def _kind(name: str) -> GateKind:
    kinds: dict[str, GateKind] = {
        "batch": "batch",
        "debounce": "debounce",
        "rate_limit": "rate_limit",
        "throttle": "throttle",
        "singleton": "singleton",
        "concurrency": "concurrency",
    }
    return kinds[name]

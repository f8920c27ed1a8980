"""Gates as they stand in a transaction. What follows from that: `harn_temporal.gates`."""

from __future__ import annotations

from dataclasses import dataclass

from harn_temporal.canonical import clean_text
from harn_temporal.eventlog.statements import Statements

NEVER_MS = 2**62


@dataclass(frozen=True, slots=True)
class StoredGate:
    """`held` and `waiting` count; `most` is its `max`, or its `size`, as its last record said.

    `first_at_ms`, `due_at_ms` and `batch_id` are about what is gathered now, and 0 or empty where
    nothing is. From `idle_from_ms` on nothing about it counts any more.
    """

    gate: int
    kind: str
    gate_id: str
    name: str
    binding_key: str
    most: int
    period_ms: int
    held: int
    waiting: int
    hits: int
    slots: int
    first_at_ms: int
    due_at_ms: int
    last_at_ms: int
    idle_from_ms: int
    batch_id: str


@dataclass(frozen=True, slots=True)
class StoredPermit:
    gate: int
    holder: str
    permit_id: str
    arrived_at_ms: int
    acquired_at_ms: int
    expires_at_ms: int


@dataclass(frozen=True, slots=True)
class StoredWaiter:
    """`standing` goes before `arrived_at_ms`, and that before `seq`, the id of its record.

    `until_ms` is the turn that a throttle gave it, else 0.
    """

    gate: int
    holder: str
    permit_id: str
    standing: int
    arrived_at_ms: int
    seq: int
    until_ms: int
    ttl_ms: int


class GateTables:
    """What a reader may ask. Nothing here writes, apart from `forget`."""

    def __init__(self, statements: Statements, now_ms: int) -> None:
        self._statements = statements
        self._now_ms = now_ms

    def find(self, kind: str, gate_id: str) -> StoredGate | None:
        rows = self._statements.rows("gates.find", kind=kind, gate_id=gate_id)
        return StoredGate(*rows[0]) if rows else None

    def of(self, gate: int) -> StoredGate:
        return StoredGate(*self._statements.rows("gates.of", gate=gate)[0])

    def named(self, name: str) -> list[StoredGate]:
        """The gates of a name: of several kinds, and seldom several of one kind."""
        rows = self._statements.rows("gates.named", gate_name=clean_text(name))
        return [StoredGate(*row) for row in rows]

    def page(self, after: StoredGate | None = None, limit: int = 100) -> list[StoredGate]:
        """In the order of their names; `after` is the last of the page before."""
        place = ("", "", "") if after is None else (after.name, after.kind, after.gate_id)
        name, kind, gate_id = place
        rows = self._statements.rows(
            "gates.list", gate_name=name, kind=kind, gate_id=gate_id, limit=limit
        )
        return [StoredGate(*row) for row in rows]

    def permit(self, gate: int, holder: str) -> StoredPermit | None:
        rows = self._statements.rows("gates.permit", gate=gate, holder=clean_text(holder))
        return StoredPermit(*rows[0]) if rows else None

    def permits(self, gate: int, limit: int) -> list[StoredPermit]:
        """The first to expire comes first."""
        rows = self._statements.rows("gates.permits", gate=gate, limit=limit)
        return [StoredPermit(*row) for row in rows]

    def permits_below(self, gate: int, path: str) -> list[StoredPermit]:
        """Of holders whose ids lie below a path."""
        path = clean_text(path)
        rows = self._statements.rows(
            "gates.permits_within", gate=gate, after=f"{path}/", before=f"{path}0"
        )
        return [StoredPermit(*row) for row in rows]

    def all_permits(
        self, after: StoredPermit | None = None, limit: int = 100
    ) -> list[StoredPermit]:
        """Of all gates; `after` is the last of the page before."""
        gate, holder = (0, "") if after is None else (after.gate, after.holder)
        rows = self._statements.rows("gates.all_permits", gate=gate, holder=holder, limit=limit)
        return [StoredPermit(*row) for row in rows]

    def permits_of(self, holder: str) -> list[StoredPermit]:
        rows = self._statements.rows("gates.permits_of", holder=clean_text(holder))
        return [StoredPermit(*row) for row in rows]

    def expired(self, limit: int) -> list[StoredPermit]:
        rows = self._statements.rows("gates.expired", now_ms=self._now_ms, limit=limit)
        return [StoredPermit(*row) for row in rows]

    def waited_for(self, after_ms: int, until_ms: int, limit: int) -> list[StoredPermit]:
        """Permits that were acquired in that time, later than asked for; the newest come first."""
        rows = self._statements.rows(
            "gates.waited_for", after_ms=after_ms, until_ms=until_ms, limit=limit
        )
        return [StoredPermit(*row) for row in rows]

    def waiter(self, gate: int, holder: str) -> StoredWaiter | None:
        rows = self._statements.rows("gates.waiter", gate=gate, holder=clean_text(holder))
        return StoredWaiter(*rows[0]) if rows else None

    def waiters(self, gate: int, limit: int) -> list[StoredWaiter]:
        """In their order."""
        rows = self._statements.rows("gates.waiters", gate=gate, limit=limit)
        return [StoredWaiter(*row) for row in rows]

    def waiters_of(self, holder: str) -> list[StoredWaiter]:
        rows = self._statements.rows("gates.waiters_of", holder=clean_text(holder))
        return [StoredWaiter(*row) for row in rows]

    def ahead(self, waiter: StoredWaiter, limit: int) -> int:
        """How many stand before a waiter, up to `limit`."""
        rows = self._statements.rows(
            "gates.ahead",
            gate=waiter.gate,
            standing=waiter.standing,
            arrived_at_ms=waiter.arrived_at_ms,
            seq=waiter.seq,
            limit=limit,
        )
        return int(rows[0][0])

    def hits(self, gate: int, first: int, last: int) -> tuple[int | None, int | None]:
        """When two hits were, by their numbers."""
        rows = self._statements.rows("gates.hits", gate=gate, first=first, last=last)
        found: dict[int, int] = dict(rows)
        return found.get(first), found.get(last)

    def slot(self, gate: int, seq: int) -> int | None:
        """When a turn is, by its number."""
        rows = self._statements.rows("gates.slot", gate=gate, seq=seq)
        return int(rows[0][0]) if rows else None

    def freed(self, gate: int) -> tuple[int, int] | None:
        """The next turn that somebody gave back, as its time and number."""
        rows = self._statements.rows("gates.freed", gate=gate, now_ms=self._now_ms)
        return (int(rows[0][0]), int(rows[0][1])) if rows else None


class GateStore(GateTables):
    """What a writer may do besides."""

    def forget_idle(self, limit: int, idle_ms: int) -> int:
        """Delete up to `limit` rows of gates about which nothing has counted for so long.

        That changes no answer, and after a rebuild, which brings them back, is done again.
        """
        left, until_ms = limit, self._now_ms - idle_ms
        for (gate,) in self._statements.rows("gates.idle", until_ms=until_ms, limit=limit):
            for name in ("gates.forget_hits", "gates.forget_slots", "gates.forget_freed"):
                if left > 0:
                    left -= self._statements.run(name, gate=gate, limit=left)
            if left <= 0:
                break
            left -= self._statements.run("gates.forget", gate=gate)
        return limit - max(left, 0)

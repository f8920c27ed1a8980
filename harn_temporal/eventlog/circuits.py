"""The circuits of destinations, as the records of `trigger.circuit.…` leave them.

Each record says how its circuit stands from then on, so the latest of a destination counts; all
of a destination lie in one topic. What opens and closes a circuit: `harn_temporal.gates.circuit`.
"""

from __future__ import annotations

from dataclasses import dataclass

from harn_temporal.canonical import clean_text
from harn_temporal.eventlog import topics
from harn_temporal.eventlog.fields import integer, mapping, text
from harn_temporal.eventlog.records import Record
from harn_temporal.eventlog.statements import Statements
from harn_temporal.headers import PERMIT_ID


@dataclass(frozen=True, slots=True)
class StoredCircuit:
    """`failures` in a row. It opened, if it did, until `open_until_ms`, else that is 0.

    `probe` is the dispatch that tries, until `probe_until_ms` at the latest; empty for none.
    """

    destination: str
    failures: int = 0
    open_until_ms: int = 0
    probe: str = ""
    probe_until_ms: int = 0


class CircuitTables:
    def __init__(self, statements: Statements) -> None:
        self._statements = statements

    def get(self, destination: str) -> StoredCircuit:
        """One without a record is closed."""
        destination = clean_text(destination)
        rows = self._statements.rows("circuits.find", destination=destination)
        return StoredCircuit(*rows[0]) if rows else StoredCircuit(destination)

    def probed_by(self, holder: str) -> list[StoredCircuit]:
        rows = self._statements.rows("circuits.probed_by", holder=clean_text(holder))
        return [StoredCircuit(*row) for row in rows]

    def page(self, after: str = "", limit: int = 100) -> list[StoredCircuit]:
        """Those with failures to count, by destination."""
        rows = self._statements.rows("circuits.list", after=after, limit=limit)
        return [StoredCircuit(*row) for row in rows]


class CircuitsProjection:
    name = "circuits"
    version = 1

    def folds(self, topic: str) -> bool:
        return topic.startswith(topics.CIRCUIT_PREFIX)

    def fold(self, statements: Statements, record: Record) -> None:
        if PERMIT_ID not in record.headers:
            return  # not ours
        payload = mapping(record)
        destination = text(payload, "destination")
        found = StoredCircuit(
            destination,
            integer(payload, "failures"),
            integer(payload, "open_until_ms"),
            text(payload, "probe"),
            integer(payload, "probe_until_ms"),
        )
        if found == StoredCircuit(destination):
            statements.run("circuits.drop", destination=destination)
            return
        statements.run(
            "circuits.write",
            destination=destination,
            failures=found.failures,
            open_until_ms=found.open_until_ms,
            probe=found.probe,
            probe_until_ms=found.probe_until_ms,
        )

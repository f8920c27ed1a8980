"""Whether the records of a topic are those that were appended: their hash chain, checked."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from harn_temporal.eventlog.log import EventLog, Record
from harn_temporal.eventlog.provenance import computed_hash, stored_hash
from harn_temporal.headers import PROVENANCE_PREV_HASH, PROVENANCE_RECORD_HASH
from harn_temporal.inspection.paging import records_of

Flaw = Literal["altered", "unlinked", "missing"]


@dataclass(frozen=True, slots=True)
class Finding:
    """What is wrong at a record.

    `altered`: its content has another hash than it carries. `unlinked`: it does not follow the
    record before it, which was replaced. `missing`: records before this id are gone.
    """

    event_id: int
    flaw: Flaw
    detail: str


@dataclass(slots=True)
class ChainReport:
    """`unsealed` counts records that carry no hash: others may append without one."""

    topic: str
    records: int = 0
    sealed: int = 0
    unsealed: int = 0
    first_id: int | None = None
    """Above 1 where older records were dropped on purpose, which is no flaw."""
    findings: list[Finding] = field(default_factory=list)

    @property
    def intact(self) -> bool:
        return not self.findings

    def to_json(self) -> dict[str, Any]:
        return {
            "topic": self.topic,
            "intact": self.intact,
            "records": self.records,
            "sealed": self.sealed,
            "unsealed": self.unsealed,
            "first_id": self.first_id,
            "findings": [asdict(finding) for finding in self.findings],
        }


async def verify(log: EventLog, topic: str) -> ChainReport:
    """Check every record of a topic, and that none is missing between or behind them."""
    # Read before the records: what is appended meanwhile is not missed, and not missing.
    head = await log.query(lambda reader: reader.head(topic))
    report = ChainReport(topic)
    previous: Record | None = None
    async for record in records_of(log, topic):
        _check(report, record, previous)
        previous = record
    last = previous.event_id if previous else 0
    if last < head:
        report.findings.append(
            Finding(head + 1, "missing", f"records {last + 1} to {head} are gone")
        )
    return report


def _check(report: ChainReport, record: Record, previous: Record | None) -> None:
    report.records += 1
    if previous is None:
        report.first_id = record.event_id
    elif record.event_id != previous.event_id + 1:
        gap = f"records {previous.event_id + 1} to {record.event_id - 1} are gone"
        report.findings.append(Finding(record.event_id, "missing", gap))
    carried = record.headers.get(PROVENANCE_RECORD_HASH)
    if carried is None:
        report.unsealed += 1
        return
    report.sealed += 1
    computed = computed_hash(record)
    if computed != carried:
        detail = f"it carries {carried}, its content has {computed}"
        report.findings.append(Finding(record.event_id, "altered", detail))
    elif previous is not None and record.event_id == previous.event_id + 1:
        _check_link(report, record, previous)


def _check_link(report: ChainReport, record: Record, previous: Record) -> None:
    named = record.headers.get(PROVENANCE_PREV_HASH)
    expected = stored_hash(previous)
    if named != expected:
        detail = f"it follows {named or 'nothing'}, record {previous.event_id} is {expected}"
        report.findings.append(Finding(record.event_id, "unlinked", detail))

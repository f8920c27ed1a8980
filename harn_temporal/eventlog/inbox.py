"""The inbox: which events were taken in already, and how dispatches ended."""

from __future__ import annotations

from dataclasses import dataclass

from harn_temporal.canonical import clean_text
from harn_temporal.eventlog import topics
from harn_temporal.eventlog.fields import Malformed, integer, mapping, text
from harn_temporal.eventlog.records import Record
from harn_temporal.eventlog.statements import Statements
from harn_temporal.headers import OUTCOME, PACKAGE, TENANT_ID, WORKFLOW_ID


@dataclass(frozen=True, slots=True)
class StoredOutcome:
    """How a dispatch ended, as in DispatchOutcome, and the outbox record that says so."""

    status: str
    topic: str
    event_id: int


@dataclass(frozen=True, slots=True)
class InboxFigures:
    """Dedupe claims that hold, and claims whose time is over."""

    active: int
    expired: int


class InboxTables:
    """The inbox as it stands in a transaction; `now_ms` decides which claims are alive."""

    def __init__(self, statements: Statements, now_ms: int) -> None:
        self._statements = statements
        self._now_ms = now_ms

    def claim_expiry(
        self, package: str, binding_id: str, dedupe_key: str, tenant_id: str | None = None
    ) -> int | None:
        """When the live claim on a dedupe key expires; None where there is none or it is over.

        Tenants do not see each other's keys.
        """
        rows = self._statements.rows(
            "inbox.claim_expiry",
            package=clean_text(package),
            tenant_id=tenant_id or "",
            binding_id=clean_text(binding_id),
            dedupe_key=clean_text(dedupe_key),
        )
        return rows[0][0] if rows and rows[0][0] > self._now_ms else None

    def figures(self) -> InboxFigures:
        """Of all packages; as much work as there are claims."""
        return InboxFigures(*self._statements.rows("inbox.figures", now_ms=self._now_ms)[0])

    def outcome(self, workflow_id: str) -> StoredOutcome | None:
        """How the dispatch of a workflow ended, however long ago; None while it has not."""
        rows = self._statements.rows("inbox.outcome", workflow_id=clean_text(workflow_id))
        return StoredOutcome(*rows[0]) if rows else None


class InboxProjection:
    name = "inbox"
    version = 2

    def folds(self, topic: str) -> bool:
        claims = topic in (topics.INBOX_CLAIMS, topics.INBOX_LEGACY)
        return claims or topics.is_of(topic, topics.TRIGGER_OUTBOX)

    def fold(self, statements: Statements, record: Record) -> None:
        if topics.is_of(record.topic, topics.TRIGGER_OUTBOX):
            _fold_outcome(statements, record)
        elif record.kind == "dedupe_claim":
            _fold_claim(statements, record)


def _fold_claim(statements: Statements, record: Record) -> None:
    payload = mapping(record)
    statements.run(
        "inbox.claim",
        package=clean_text(record.headers.get(PACKAGE, "")),
        tenant_id=clean_text(record.headers.get(TENANT_ID, "")),
        binding_id=text(payload, "binding_id"),
        dedupe_key=text(payload, "dedupe_key"),
        expires_at_ms=integer(payload, "expires_at_ms"),
    )


def _fold_outcome(statements: Statements, record: Record) -> None:
    workflow_id = record.headers.get(WORKFLOW_ID)
    status = record.headers.get(OUTCOME)
    if workflow_id is None or status is None:
        return  # one of several records of a dispatch, and not the one that ends it
    if not status:
        raise Malformed(f"has an empty header {OUTCOME}")
    statements.run(
        "inbox.end",
        workflow_id=clean_text(workflow_id),
        status=clean_text(status),
        topic=record.topic,
        event_id=record.event_id,
    )

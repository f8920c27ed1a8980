"""Durable requests to cancel a dispatch, whoever appended them."""

from __future__ import annotations

from harn_temporal.canonical import clean_text
from harn_temporal.eventlog import topics
from harn_temporal.eventlog.fields import mapping, text
from harn_temporal.eventlog.records import Record
from harn_temporal.eventlog.statements import Statements

CANCEL_REQUESTED = "dispatch_cancel_requested"


class CancelRequestTables:
    """The requests as they stand in a transaction."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements

    def requested(self, binding_key: str, event_id: str) -> bool:
        """Whether the dispatch of an event was to be cancelled. It says nothing of replays."""
        return bool(
            self._statements.rows(
                "cancel_requests.one",
                binding_key=clean_text(binding_key),
                event_id=clean_text(event_id),
            )
        )


class CancelRequestsProjection:
    name = "cancel_requests"
    version = 1

    def folds(self, topic: str) -> bool:
        return topic == topics.CANCEL_REQUESTS

    def fold(self, statements: Statements, record: Record) -> None:
        if record.kind != CANCEL_REQUESTED:
            return
        payload = mapping(record)
        statements.run(
            "cancel_requests.note",
            binding_key=text(payload, "binding_key"),
            event_id=text(payload, "event_id"),
        )

"""Counters and histograms of this process, from the records that it appends.

A record is appended once, whoever tries how often, so what is counted here is true by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry, Counter, Histogram

from harn_temporal.errors import StoreError
from harn_temporal.eventlog import tallies, topics
from harn_temporal.eventlog.tallies import tally_of
from harn_temporal.headers import HOLDER
from harn_temporal.telemetry import families
from harn_temporal.telemetry.topic_labels import topic_label

if TYPE_CHECKING:
    from harn_temporal.attempt_figures import StartedAttempt
    from harn_temporal.eventlog.log import Record
    from harn_temporal.pump_figures import Admission
    from harn_temporal.telemetry.families import Family


BACKPRESSURE = {
    "batch_enqueued": ("batch", "wait"),
    "batch_dispatched": ("batch", "dispatch"),
    "debounce_seen": ("debounce", "wait"),
    "debounce_selected": ("debounce", "dispatch"),
    "rate_limit_blocked": ("rate_limit", "skip"),
    "throttle_wait": ("throttle", "wait"),
    "singleton_skipped": ("singleton", "skip"),
    "concurrency_waiting": ("concurrency", "wait"),
    "circuit_opened": ("circuit", "open"),
    "circuit_probe": ("circuit", "probe"),
    "circuit_closed": ("circuit", "close"),
}
"""By the kind of a gate's record, of ours, the dimension and the action that it counts as."""


class ProcessMetrics:
    """Give its methods to whoever has something to tell. They never raise, and any thread may."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self._received = self._counter(families.RECEIVED)
        self._predicates = self._counter(families.PREDICATES)
        self._tallied = {
            tallies.DISPATCHED: self._counter(families.DISPATCHED),
            tallies.RETRIED: self._counter(families.RETRIED),
            tallies.DEAD: self._counter(families.DEAD),
        }
        self._backpressure = self._counter(families.BACKPRESSURE)
        self._to_append = self._histogram(families.TO_APPEND)
        self._at_admission = self._histogram(families.AT_ADMISSION)
        self._at_start = self._histogram(families.AT_START)
        self._runtime = self._histogram(families.RUNTIME)
        self._retry_delay = self._histogram(families.RETRY_DELAY)
        self._to_dlq = self._histogram(families.TO_DLQ)
        self._admission_delay = self._histogram(families.ADMISSION_DELAY)
        self._claim_age = self._histogram(families.CLAIM_AGE)
        self._append = self._histogram(families.APPEND)
        self._by_kind: dict[str, Callable[[Record], None]] = {
            "attempt_recorded": self._attempt_recorded,
            "retry_scheduled": self._retry_scheduled,
            "dlq_moved": self._dlq_moved,
            "job_claimed": self._job_claimed,
            "predicate.evaluated": self._predicate_evaluated,
        }

    def appended(self, records: Sequence[Record], seconds: float) -> None:
        """Of one transaction: what it appended, and how long it took."""
        for topic in {topic_label(record.topic) for record in records}:
            self._append.labels(topic).observe(seconds)
        for record in records:
            try:
                self._count(record)
            except (KeyError, TypeError, ValueError, AttributeError, StoreError):
                continue  # a record of a handler's program on one of our topics

    def admitted(self, admission: Admission) -> None:
        labels = (admission.trigger_id, admission.binding_key, admission.provider, "admitted")
        self._received.labels(admission.trigger_id, admission.provider).inc()
        accepted, appended = admission.accepted_at_ms, admission.appended_at_ms
        self._to_append.labels(*labels).observe(_seconds(appended - accepted))
        self._at_admission.labels(*labels).observe(_seconds(admission.admitted_at_ms - accepted))
        self._admission_delay.labels(topics.INBOX_ENVELOPES).observe(
            _seconds(admission.admitted_at_ms - appended)
        )

    def started(self, attempt: StartedAttempt) -> None:
        """Of the first attempt of a dispatch that is no replay."""
        labels = (attempt.trigger_id, attempt.binding_key, attempt.provider, "started")
        waited = _seconds(attempt.started_at_ms - _ms(attempt.received_at))
        self._at_start.labels(*labels).observe(waited)

    def _count(self, record: Record) -> None:
        tally = tally_of(record)
        if tally is not None:
            what, labels = tally
            if what in self._tallied:
                self._tallied[what].labels(*labels).inc()
        held_back = BACKPRESSURE.get(record.kind)
        if held_back is not None and HOLDER in record.headers:
            self._backpressure.labels(*held_back).inc()
        count = self._by_kind.get(record.kind)
        if count is not None:
            count(record)

    def _attempt_recorded(self, record: Record) -> None:
        payload = record.payload
        taken = _ms(payload["completed_at"]) - _ms(payload["started_at"])
        self._runtime.labels(*_life(record, payload["outcome"])).observe(_seconds(taken))

    def _retry_scheduled(self, record: Record) -> None:
        labels = _life(record, "scheduled")
        self._retry_delay.labels(*labels).observe(_seconds(record.payload["delay_ms"]))

    def _dlq_moved(self, record: Record) -> None:
        accepted = _ms(record.payload["event"]["received_at"])
        reason = tallies.reason_of(record)
        if reason == tallies.CIRCUIT_OPEN:
            self._backpressure.labels("circuit", "reject").inc()
        labels = _life(record, reason)
        self._to_dlq.labels(*labels).observe(_seconds(record.occurred_at_ms - accepted))

    def _job_claimed(self, record: Record) -> None:
        queue, _ = topics.parse_queue_topic(record.topic)
        waited = record.payload["scheduling"]["waited_ms"]
        self._claim_age.labels(queue).observe(_seconds(waited))

    def _predicate_evaluated(self, record: Record) -> None:
        result = "true" if record.payload["result"] else "false"
        self._predicates.labels(record.headers["trigger_id"], result).inc()

    def _counter(self, family: Family) -> Counter:
        return Counter(family.name, family.help, family.labels, registry=self._registry)

    def _histogram(self, family: Family) -> Histogram:
        return Histogram(
            family.name,
            family.help,
            family.labels,
            registry=self._registry,
            buckets=family.buckets,
        )


def _life(record: Record, status: str) -> tuple[str, ...]:
    headers = record.headers
    return headers["trigger_id"], headers["binding_key"], headers["provider"], status


def _seconds(ms: Any) -> float:
    """Clocks of different hosts may disagree; nothing has waited for less than nothing."""
    return max(0.0, float(ms) / 1000)


def _ms(moment: str) -> float:
    return datetime.fromisoformat(moment).timestamp() * 1000

"""Admission: from what the pump found to dispatches that were started and cursors behind them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harn_temporal.activities.envelopes import Envelopes
from harn_temporal.activities.pump_intake import Batch, Definition, Look
from harn_temporal.contracts import AttemptOutcome, DispatchRequest, EventAddress
from harn_temporal.dedupe_figures import count_dropped
from harn_temporal.dispatch_records import cancelled, end_key, outcome_of
from harn_temporal.errors import DispatchRefusedError, StoreError, UnavailableError
from harn_temporal.event_address import address_of, with_event
from harn_temporal.eventlog.dispatches import StoredDispatch
from harn_temporal.eventlog.log import EventLog, Reader, Record, Transaction
from harn_temporal.eventlog.records import Append
from harn_temporal.headers import ACCEPTED_AT_MS, BATCH
from harn_temporal.naming import dispatch_workflow_id
from harn_temporal.pump_figures import Admission, PumpFigures
from harn_temporal.pump_records import PumpRecords
from harn_temporal.telemetry import tracing
from harn_temporal.telemetry.dispatch_spans import dispatch_span

logger = logging.getLogger("harn_temporal.pump")

Start = Callable[[DispatchRequest], Awaitable[object]]
"""Starts a dispatch that has no outcome, unless it was started before. Raises UnavailableError to
be tried again, DispatchRefusedError where this request will never be taken."""

REPORTS = 200
"""Ends of dispatches that are recorded in one transaction."""

Place = tuple[str, int]


@dataclass(slots=True)
class _Job:
    """A dispatch that an envelope asks for."""

    request: DispatchRequest
    workflow_id: str
    failure: UnavailableError | StoreError | None = None
    refusal: DispatchRefusedError | None = None
    ended: bool = False
    """Whether the log holds its outcome: then Temporal may have forgotten that it ran."""
    admitted_at_ms: int = 0
    started_at_ms: int = 0


@dataclass(slots=True)
class _Item:
    """An envelope of this package, and what is to be done about it."""

    record: Record
    jobs: list[_Job] = field(default_factory=list)
    malformed: str | None = None


class Admissions:
    """`figures` says how much may be outstanding, and is kept up to date."""

    def __init__(
        self,
        log: EventLog,
        start: Start,
        envelopes: Envelopes,
        figures: PumpFigures,
        consumer_id: str,
    ) -> None:
        self._log = log
        self._start = start
        self._envelopes = envelopes
        self._figures = figures
        self._consumer_id = consumer_id

    async def admit(self, look: Look) -> bool:
        """Record, start side by side, record that, and move the cursors past what was started.

        Two transactions, however many envelopes. A pump that is killed in between finds the same
        envelopes after its cursors, and neither records nor starts them twice. False where there
        was no room for anything after all. Raises the first failure to start a dispatch; what
        comes before it in its topic is done with.
        """
        items = await asyncio.to_thread(self._items, look)
        batches = self._within_room(look, items)
        if not any(batch.leads_on for batch in batches):
            return False
        kept = _of(batches, items)
        if kept:
            await self._log.transact(lambda tx: self._record_admissions(tx, kept))
        jobs = [job for item in kept for job in item.jobs]
        await asyncio.gather(*(self._start_one(job) for job in jobs))
        refused = [
            (job, await with_event(self._log, job.request))
            for job in jobs
            if job.refusal is not None
        ]
        done = [_before_failure(batch, items) for batch in batches]

        def work(tx: Transaction) -> int:
            for job, request in refused:
                _end_refused(tx, job, request)
            self._record_starts(tx, done, items)
            return self.report(tx)

        self._figures.completed += await self._log.transact(work)
        self._count(done, items)
        failures = [job.failure for job in jobs if job.failure is not None]
        if failures:
            raise failures[0]
        return True

    def report(self, tx: Transaction) -> int:
        """Record the ends of dispatches that were admitted here, whichever worker ended them."""
        records = self._records(tx)
        appends = [
            records.dispatch_completed(
                EventAddress(topic=dispatch.envelope_topic, event_id=dispatch.envelope_id),
                dispatch.workflow_id,
                status=dispatch.outcome,
                error=_error_of(tx, dispatch.workflow_id),
            )
            for dispatch in tx.dispatches.unreported(self._envelopes.package, REPORTS)
        ]
        tx.append(appends)
        return len(appends)

    def _items(self, look: Look) -> dict[Place, _Item]:
        """What is ours among the records; not in the event loop, since events may be large."""
        return {
            _place(record): self._item(record, look.definitions)
            for batch in look.batches
            for record in batch.records
            if self._envelopes.concerns(record)
        }

    def _item(self, record: Record, definitions: Mapping[Definition, Mapping[str, Any]]) -> _Item:
        try:
            requests = self._envelopes.requests(
                record, lambda trigger_id, version: definitions.get((trigger_id, version))
            )
        except Exception as error:  # noqa: BLE001 - whatever one envelope holds, the next ones go on
            logger.error(  # noqa: TRY400 - the envelope is at fault, not the code
                "envelope_malformed",
                extra={"topic": record.topic, "offset": record.event_id, "error": str(error)},
            )
            return _Item(record, malformed=str(error))
        return _Item(record, [_Job(request, _workflow_id(request)) for request in requests])

    def _within_room(self, look: Look, items: Mapping[Place, _Item]) -> list[Batch]:
        """Leave for later what an adopted envelope's several dispatches have no room for.

        An envelope is admitted as a whole: one that asks for more than there can ever be room
        for is taken when nothing else is outstanding.
        """
        room = self._figures.max_outstanding - look.outstanding
        batches = []
        for batch in look.batches:
            end = batch.end
            for item in _of([batch], items):
                if _place(item.record) in look.begun:
                    continue
                alone = room == self._figures.max_outstanding
                if len(item.jobs) > room and not alone:
                    end = item.record.event_id - 1
                    break
                room -= len(item.jobs)
            batches.append(batch.until(end))
        return batches

    def _record_admissions(self, tx: Transaction, items: Sequence[_Item]) -> None:
        records = self._records(tx)
        outstanding = tx.dispatches.outstanding(self._envelopes.package)
        appends: list[Append] = []
        for item in items:
            for job in item.jobs:
                job.admitted_at_ms = tx.now_ms
                job.ended = tx.inbox.outcome(job.workflow_id) is not None
            for job in item.jobs:
                _resume(tx, job)
            fresh = [job for job in item.jobs if not _is_admitted(tx, job.workflow_id)]
            if item.jobs and not fresh:
                continue  # by this pump before it was killed, or for an envelope before this one
            appends.append(records.received(address_of(item.record), outstanding=outstanding))
            for job in fresh:
                outstanding += 1
                appends.append(records.eligible(job.request, job.workflow_id))
                appends.append(
                    records.admitted(job.request, job.workflow_id, outstanding_after=outstanding)
                )
        tx.append(appends)

    async def _start_one(self, job: _Job) -> None:
        try:
            with dispatch_span(tracing.ADMIT, job.request, kind="consumer") as span:
                if job.ended:
                    count_dropped(job.request.binding.trigger_id, "dispatch_exists")
                else:
                    request = job.request.model_copy(update={"traceparent": span.traceparent})
                    await self._start(request)
            logger.info(
                "dispatch_admitted",
                extra={"workflow_id": job.workflow_id, "trace_id": job.request.trace_id},
            )
        except DispatchRefusedError as error:
            job.refusal = error
            logger.error(  # noqa: TRY400 - the request is at fault, not the code
                "dispatch_refused", extra={"workflow_id": job.workflow_id, "error": str(error)}
            )
        except (UnavailableError, StoreError) as error:
            job.failure = error

    def _record_starts(
        self, tx: Transaction, batches: Sequence[Batch], items: Mapping[Place, _Item]
    ) -> None:
        """What was started, and the cursors behind it: once, even where two pumps overlap."""
        records = self._records(tx)
        appends: list[Append] = []
        for batch in batches:
            cursor = tx.cursor(batch.topic, self._consumer_id)
            ours = [item for item in _of([batch], items) if item.record.event_id > cursor]
            for item in ours:
                for job in item.jobs:
                    job.started_at_ms = tx.now_ms
                appends += _started_records(records, item)
            if ours:
                end = EventAddress(topic=batch.topic, event_id=batch.end)
                appends.append(records.acked(end))
            tx.ack(batch.topic, self._consumer_id, batch.end)
        tx.append(appends)

    def _count(self, batches: Sequence[Batch], items: Mapping[Place, _Item]) -> None:
        figures = self._figures
        for batch in batches:
            ours = _of([batch], items)
            figures.passed += len(batch.records) - len(ours)
            figures.received += len(ours)
            for item in ours:
                figures.malformed += item.malformed is not None
                figures.eligible += len(item.jobs)
                figures.admitted += len(item.jobs)
                figures.started += sum(job.refusal is None for job in item.jobs)
                if figures.on_admission is not None:
                    for job in item.jobs:
                        figures.on_admission(_admission(item.record, job))

    def _records(self, reader: Reader) -> PumpRecords:
        return PumpRecords(
            self._envelopes.package,
            max_outstanding=self._figures.max_outstanding,
            now_ms=reader.now_ms,
        )


def _of(batches: Sequence[Batch], items: Mapping[Place, _Item]) -> list[_Item]:
    """The items of the records that are in `batches`, in their order."""
    places = (_place(record) for batch in batches for record in batch.records)
    return [items[place] for place in places if place in items]


def _before_failure(batch: Batch, items: Mapping[Place, _Item]) -> Batch:
    for item in _of([batch], items):
        if any(job.failure is not None for job in item.jobs):
            return batch.until(item.record.event_id - 1)
    return batch


def _started_records(records: PumpRecords, item: _Item) -> list[Append]:
    if item.malformed is not None:
        place = address_of(item.record)
        return [records.dispatch_completed(place, None, status="failed", error=item.malformed)]
    return [
        records.dispatch_started(job.request, job.workflow_id)
        for job in item.jobs
        if job.refusal is None
    ]


def _admission(record: Record, job: _Job) -> Admission:
    written = record.headers.get(ACCEPTED_AT_MS, "")
    known = written.isascii() and written.isdecimal()
    return Admission(
        trigger_id=job.request.binding.trigger_id,
        binding_key=job.request.binding.binding_key,
        provider=record.headers.get("provider", job.request.binding.provider),
        tenant_id=job.request.tenant_id,
        workflow_id=job.workflow_id,
        accepted_at_ms=int(written) if known else record.occurred_at_ms,
        appended_at_ms=record.occurred_at_ms,
        admitted_at_ms=job.admitted_at_ms,
        started_at_ms=job.started_at_ms,
    )


def _end_refused(tx: Transaction, job: _Job, request: DispatchRequest) -> None:
    """A dispatch that Temporal never takes ends here, with the reason why."""
    batch = cancelled(
        request, 0, error=str(job.refusal), workflow_id=job.workflow_id, now_ms=tx.now_ms
    )
    tx.append(batch, key=end_key(job.workflow_id, 1))


def _error_of(reader: Reader, workflow_id: str) -> str | None:
    found = reader.inbox.outcome(workflow_id)
    if found is None or found.status == "succeeded":
        return None
    [record] = reader.read(found.topic, after=found.event_id - 1, limit=1)
    payload: Any = record.payload
    error = payload.get("error", payload.get("message"))
    return error if isinstance(error, str) else None


def _is_admitted(reader: Reader, workflow_id: str) -> bool:
    found = reader.dispatches.get(workflow_id)
    return found is not None and found.admitted


def _resume(reader: Reader, job: _Job) -> None:
    """Have a dispatch that was lost go on from the last of its attempts that has ended."""
    found = reader.dispatches.get(job.workflow_id)
    if found is None or not found.ended_attempt or found.outcome:
        return
    written = reader.written(end_key(job.workflow_id, found.ended_attempt))
    if written:  # else another program wrote that end, in its own way
        job.request = job.request.model_copy(
            update={"resume": _resumed(reader, written), "batch": _batch(reader, found)}
        )


def _batch(reader: Reader, dispatch: StoredDispatch) -> EventAddress | None:
    """What names the members of the batch that it led."""
    begun = reader.read(dispatch.begun_topic, after=dispatch.begun_id - 1, limit=1)
    return EventAddress.read(begun[0].headers.get(BATCH, "")) if begun else None


def _resumed(reader: Reader, written: Sequence[Record]) -> AttemptOutcome:
    """The outcome of an attempt, with what is left of the wait for the next one."""
    outcome = outcome_of(written)
    due_ms = written[0].occurred_at_ms + (outcome.retry_in_ms or 0)
    return outcome.model_copy(update={"retry_in_ms": max(0, due_ms - reader.now_ms)})


def _workflow_id(request: DispatchRequest) -> str:
    binding = request.binding
    return dispatch_workflow_id(
        binding.package, binding.trigger_id, request.event_id, request.replay
    )


def _place(record: Record) -> Place:
    return record.topic, record.event_id

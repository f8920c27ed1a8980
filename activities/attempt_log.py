"""What an attempt reads and appends, each function one transaction of the EventLog."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from pydantic import JsonValue

from harn_temporal.activities.gate_exits import (
    has_its_permits,
    leave_after,
    leave_unbegun,
    refused_by_circuit,
    tell_of_attempt,
)
from harn_temporal.canonical import encode
from harn_temporal.contracts import (
    INLINE_RESULT_LIMIT,
    AttemptOutcome,
    DispatchEnd,
    DispatchRequest,
    EventAddress,
    RemoteTask,
)
from harn_temporal.dispatch_records import (
    attempt_history,
    cancelled,
    end_key,
    ended,
    outcome_of,
    pending,
    pending_key,
    refused,
    start_key,
    started,
    verdict,
)
from harn_temporal.event_address import address_of
from harn_temporal.eventlog.log import EventLog, Reader, Record, Transaction
from harn_temporal.eventlog.topics import TRIGGER_DLQ, TRIGGER_OUTBOX, tenant_topic
from harn_temporal.gates.decisions import Wake
from harn_temporal.pump_records import parked
from harn_temporal.queue.keeping import holds
from harn_temporal.queue.settling import LOST

CANCELLED = "cancelled"
"""The error of a dispatch that was cancelled."""

CIRCUIT_OPEN = "circuit_open"
"""Why a dispatch became a dead letter before its first attempt."""

OUTCOME_KINDS = frozenset({"dispatch_succeeded", "dispatch_failed", "dispatch_waiting"})


class PermitsLostError(Exception):
    """Others hold the permits that an attempt was to begin under; nothing was appended."""


class AttemptLog:
    """The records of one attempt. `request` carries its event."""

    def __init__(
        self,
        log: EventLog,
        request: DispatchRequest,
        *,
        dispatch_id: str,
        run_id: str,
        attempt: int,
    ) -> None:
        self._log = log
        self._request = request
        self._dispatch_id = dispatch_id
        self._run_id = run_id
        self._attempt = attempt
        self._start_key = start_key(dispatch_id, run_id, attempt)
        self._pending_key = pending_key(dispatch_id, run_id, attempt)
        self._end_key = end_key(dispatch_id, attempt)
        self._started_at_ms: int | None = None
        """Of the start that was appended here; None where the log has to be asked."""
        self._wakes: dict[str, Wake] = {}

    @property
    def wakes(self) -> tuple[Wake, ...]:
        """Whom to signal at a gate, for what was appended here."""
        return tuple(self._wakes.values())

    @property
    def started_at_ms(self) -> int | None:
        """When the attempt began, where `start` appended that; None where it had begun before."""
        return self._started_at_ms

    async def start(self) -> AttemptOutcome | None:
        """Append the start, unless the attempt has ended already: then give its outcome.

        A durable request to cancel this dispatch ends it here, where it did not reach it before;
        so does the loss of the claim that its job is dispatched under, and before the first
        attempt an open circuit. Raises PermitsLostError.
        """

        def work(tx: Transaction) -> AttemptOutcome | None:
            written = tx.written(self._end_key)
            if written:
                return _adopted(written)
            claim = self._request.claim
            if claim is not None and not holds(tx, claim):
                return self._end_cancelled(tx, LOST)
            if cancel_requested(tx, self._request):
                return self._end_cancelled(tx)
            if not has_its_permits(tx, self._request, self._dispatch_id):
                raise PermitsLostError
            refusal = self._refuse(tx)
            if refusal is not None:
                return refusal
            batch = started(
                self._request, self._attempt, workflow_id=self._dispatch_id, now_ms=tx.now_ms
            )
            if tx.append(batch, key=self._start_key).fresh:
                begun_at_ms.append(tx.now_ms)
            return None

        begun_at_ms: list[int] = []
        outcome = await self._log.transact(work)
        self._started_at_ms = begun_at_ms[0] if begun_at_ms else None
        return outcome

    async def pend(self, task: RemoteTask) -> None:
        """Append that the attempt goes on as a task of an agent: no pump waits for it now."""

        def work(tx: Transaction) -> None:
            tell_of_attempt(
                tx,
                self._request,
                self._dispatch_id,
                AttemptOutcome(attempt=self._attempt, status="success"),
            )
            batch = pending(self._request, self._attempt, task, now_ms=tx.now_ms)
            batch.append(
                parked(self._dispatch_id, "a2a_task", now_ms=tx.now_ms, attempt=self._attempt)
            )
            tx.append(batch, key=self._pending_key)

        await self._log.transact(work)

    async def end(self, outcome: AttemptOutcome) -> AttemptOutcome:
        """Append the outcome and give it, or the one that somebody else appended before."""

        def work(tx: Transaction) -> AttemptOutcome:
            return self._end(tx, outcome)

        return await self._log.transact(work)

    async def act(self, act: Callable[[Transaction], AttemptOutcome]) -> AttemptOutcome:
        """What the attempt does in the log, and its outcome, in one transaction.

        Nothing is done where the attempt has ended already.
        """

        def work(tx: Transaction) -> AttemptOutcome:
            written = tx.written(self._end_key)
            return _adopted(written) if written else self._end(tx, act(tx))

        return await self._log.transact(work)

    def _end(
        self, tx: Transaction, outcome: AttemptOutcome, *, lost: bool = False
    ) -> AttemptOutcome:
        started_at_ms = self._started_at_ms
        if started_at_ms is None:
            begun = tx.written(self._start_key)
            started_at_ms = begun[0].occurred_at_ms if begun else tx.now_ms
        address = _address_for(outcome, self._outbox(), tx)
        batch = ended(
            self._request,
            outcome,
            started_at_ms=started_at_ms,
            now_ms=tx.now_ms,
            workflow_id=self._dispatch_id,
            history=self._history(tx) if outcome.final == "dlq" else (),
            dead_letter=self._dead_letter(tx) if outcome.final in {"succeeded", "dlq"} else None,
            result_address=address,
        )
        appended = tx.append(batch, key=self._end_key)
        if appended.fresh:
            tell_of_attempt(tx, self._request, self._dispatch_id, outcome, lost=lost)
            self._wake(leave_after(tx, self._request, self._dispatch_id, outcome))
            return _carried(outcome, appended.records)
        return _adopted(appended.records)

    async def end_lost(self, outcome: AttemptOutcome) -> AttemptOutcome:
        """As `end`; but an attempt that was cancelled before it began leaves no attempt behind.

        Without a task that the agent had made of it, nobody knows what the agent did.
        """
        if outcome.status == "cancelled" and not await self._begun():
            return await self.cancel()
        lost = outcome.remote_task is None
        return await self._log.transact(lambda tx: self._end(tx, outcome, lost=lost))

    async def cancel(self) -> AttemptOutcome:
        """Append the end of a dispatch that was cancelled before this attempt began."""
        return await self._log.transact(self._append_cancelled)

    async def cancel_dispatch(self) -> DispatchEnd:
        """Append the end of a cancelled dispatch, at the first attempt that has no outcome.

        Where the dispatch had ended by then, that end holds: a cancellation may arrive together
        with the outcome of an attempt, of which the workflow then does not know.
        """
        return await self._log.transact(self.cancelled_in)

    def cancelled_in(self, tx: Transaction) -> DispatchEnd:
        written = tx.written(self._end_key)
        if written:
            outcome = _adopted(written)
            if outcome.final is not None:
                return DispatchEnd.of(outcome)
            following = self._following()
            end = following.cancelled_in(tx)
            self._wake(following.wakes)
            return end
        stored = tx.inbox.outcome(self._dispatch_id)
        if stored is None:
            return DispatchEnd.of(self._append_cancelled(tx))
        # Its predicate, or a gate, said no.
        found = {"status": stored.status, "attempts": self._attempt - 1}
        return DispatchEnd.model_validate(found)

    def _following(self) -> AttemptLog:
        return AttemptLog(
            self._log,
            self._request,
            dispatch_id=self._dispatch_id,
            run_id=self._run_id,
            attempt=self._attempt + 1,
        )

    def _append_cancelled(self, tx: Transaction, error: str = CANCELLED) -> AttemptOutcome:
        batch = cancelled(
            self._request,
            self._attempt - 1,
            error=error,
            workflow_id=self._dispatch_id,
            now_ms=tx.now_ms,
        )
        appended = tx.append(batch, key=self._end_key)
        self._wake(leave_unbegun(tx, self._request, self._dispatch_id, CANCELLED))
        return _adopted(appended.records)

    def _refuse(self, tx: Transaction) -> AttemptOutcome | None:
        """Before the first attempt, what becomes of a dispatch whose destination is given up."""
        if self._attempt > 1 or tx.written(self._start_key):
            return None
        answer = refused_by_circuit(tx, self._request, self._dispatch_id)
        if answer is None:
            return None
        batch = refused(
            self._request,
            CIRCUIT_OPEN,
            f"the circuit of {answer.destination} is open",
            workflow_id=self._dispatch_id,
            now_ms=tx.now_ms,
            dead_letter=self._dead_letter(tx),
        )
        appended = tx.append(batch, key=self._end_key)
        self._wake(leave_unbegun(tx, self._request, self._dispatch_id, CIRCUIT_OPEN))
        return _adopted(appended.records)

    def _wake(self, wakes: Iterable[Wake]) -> None:
        self._wakes |= {wake.holder: wake for wake in wakes}

    def _end_cancelled(self, tx: Transaction, error: str = CANCELLED) -> AttemptOutcome:
        """An attempt that a shutdown cut short began, and is recorded as one."""
        if not tx.written(self._start_key):
            return self._append_cancelled(tx, error)
        outcome = verdict(self._request.binding, self._attempt, "cancelled", error=error)
        return self._end(tx, outcome)

    def _dead_letter(self, reader: Reader) -> Mapping[str, Any] | None:
        """The payload of the pending dead letter that this dispatch is a replay for."""
        if self._request.replay_of_event_id is None:
            return None
        found = reader.dead_letters.pending(
            self._request.event_id, self._request.binding.trigger_id
        )
        if found is None:
            return None
        [record] = reader.read(TRIGGER_DLQ, found.record_id - 1, 1)
        payload: Mapping[str, Any] = record.payload
        return payload

    async def _begun(self) -> bool:
        return await self._log.query(lambda reader: bool(reader.written(self._start_key)))

    def _outbox(self) -> str:
        return tenant_topic(self._request.tenant_id, TRIGGER_OUTBOX)

    def _history(self, reader: Reader) -> Sequence[dict[str, object]]:
        records = [
            record
            for attempt in range(1, self._attempt)
            for record in reader.written(end_key(self._dispatch_id, attempt))
        ]
        return attempt_history(
            records,
            binding_key=self._request.binding.binding_key,
            event_id=self._request.event_id,
            before=self._attempt,
        )


def cancel_requested(reader: Reader, request: DispatchRequest) -> bool:
    """Whether a durable request cancels this dispatch. A replay is a dispatch of its own."""
    return request.replay_of_event_id is None and reader.cancel_requests.requested(
        request.binding.binding_key, request.event_id
    )


def _adopted(records: Sequence[Record]) -> AttemptOutcome:
    """What somebody wrote. An attempt that was cancelled before it began counts as none."""
    outcome = outcome_of(records)
    if not any(record.kind == "attempt_recorded" for record in records):
        outcome = outcome.model_copy(update={"attempt": outcome.attempt - 1})
    return _carried(outcome, records)


def _address_for(outcome: AttemptOutcome, outbox: str, reader: Reader) -> EventAddress | None:
    """Where a large result will lie: `ended` has one outbox record, and it is the next one."""
    if not _is_large(outcome.result):
        return None
    return EventAddress(topic=outbox, event_id=reader.head(outbox) + 1)


def _is_large(result: JsonValue) -> bool:
    return result is not None and len(encode(result)) > INLINE_RESULT_LIMIT


def _carried(outcome: AttemptOutcome, records: Sequence[Record]) -> AttemptOutcome:
    """The outcome as a workflow can carry it: a large result becomes the address of its record."""
    if not _is_large(outcome.result):
        return outcome
    holder = next(record for record in records if record.kind in OUTCOME_KINDS)
    return outcome.model_copy(update={"result": None, "result_address": address_of(holder)})

"""The sweep: a dispatch whose workflow is gone without a word gets its end in the log.

One whose workflow Temporal does not know is not ended but noted as lost, for `recover`: the service
may have lost its state, or may be another one than the dispatch was started at.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from harn_temporal import headers
from harn_temporal.activities.attempt_log import CANCELLED, cancel_requested
from harn_temporal.activities.envelopes import Envelopes
from harn_temporal.contracts import AttemptOutcome, DispatchRequest, EventAddress
from harn_temporal.dispatch_records import cancelled, end_key, ended
from harn_temporal.errors import StoreError, UnavailableError
from harn_temporal.event_address import event_in
from harn_temporal.eventlog.dispatches import StoredDispatch
from harn_temporal.eventlog.log import Append, EventLog, Reader, Record, Transaction
from harn_temporal.naming import dispatch_workflow_id, pump_consumer
from harn_temporal.pump_figures import PumpFigures
from harn_temporal.pump_records import PumpRecords

logger = logging.getLogger("harn_temporal.sweep")

Life = Literal["open", "closed", "unknown"]
"""Of a workflow, as Temporal says itself: `unknown` is one that it has forgotten or never had."""

Verdict = Literal["swept", "lost"]

Describe = Callable[[str], Awaitable[Life]]
"""The life of the workflow with an id. Raises UnavailableError."""

Release = Callable[[Transaction, str], None]
"""Gives back what the dispatch of a workflow id holds, in the transaction that ends it."""

TERMINATED = "terminated"
PAGE = 200
SIDE_BY_SIDE = 8
"""Workflows that Temporal is asked about at a time."""


@dataclass(frozen=True, slots=True)
class _Suspect:
    """`had_workflow` was so before Temporal was asked.

    What the log says afterwards proves nothing about a workflow that Temporal did not know: the
    pump may have started it, and moved its cursor, between the question and the answer.
    """

    dispatch: StoredDispatch
    had_workflow: bool


class Sweep:
    """Looks at each dispatch of a package that began or was admitted, and has no outcome.

    A workflow that was terminated, timed out or failed wrote nothing about it. Temporal is asked
    for each workflow by its id: what it lists is too old to decide upon. One that is lost is ended
    once its cancellation was requested. `others` are sweeps that run after each of its own.
    """

    def __init__(
        self,
        log: EventLog,
        describe: Describe,
        envelopes: Envelopes,
        figures: PumpFigures,
        *,
        releases: Sequence[Release] = (),
        others: Sequence[Callable[[], Awaitable[None]]] = (),
    ) -> None:
        self._log = log
        self._describe = describe
        self._envelopes = envelopes
        self._figures = figures
        self._releases = releases
        self._others = others
        self._consumer_id = pump_consumer(envelopes.package)

    async def run(self, interval_s: float) -> None:
        """Sweep, and again after the interval, until cancelled. What fails is tried next time."""
        while True:
            try:
                await self.once()
                for other in self._others:
                    await other()
            except (UnavailableError, StoreError) as error:
                logger.warning("sweep_failed", extra={"error": str(error)})
            await asyncio.sleep(interval_s)

    async def once(self) -> int:
        """Sweep once; returns how many dispatches were ended."""
        after, count = "", 0
        while page := await self._page(after):
            for start in range(0, len(page), SIDE_BY_SIDE):
                some = page[start : start + SIDE_BY_SIDE]
                count += sum(await asyncio.gather(*(self._look_at(each) for each in some)))
            after = page[-1].dispatch.workflow_id
        return count

    async def _page(self, after: str) -> list[_Suspect]:
        package = self._envelopes.package
        return await self._log.query(
            lambda reader: [
                _Suspect(dispatch, self._had_workflow(reader, dispatch))
                for dispatch in reader.dispatches.under_way(package, after=after, limit=PAGE)
            ]
        )

    async def _look_at(self, suspect: _Suspect) -> bool:
        dispatch = suspect.dispatch
        life = await self._describe(dispatch.workflow_id)
        if life == "open" or (life == "unknown" and not suspect.had_workflow):
            return False
        end = self._end if life == "closed" else self._end_or_lose
        try:
            request = await self._log.query(lambda reader: self._request(reader, dispatch))
        except StoreError as error:
            logger.error(  # noqa: TRY400 - what the log holds is at fault, not the code
                "sweep_skips", extra={"workflow_id": dispatch.workflow_id, "error": str(error)}
            )
            return False

        def work(tx: Transaction) -> Verdict | None:
            now = tx.dispatches.get(dispatch.workflow_id)
            if now is None or now.outcome or now.envelope_id != dispatch.envelope_id:
                return None
            verdict = end(tx, now, request)
            if verdict is not None:
                for release in self._releases:
                    release(tx, now.workflow_id)
            return verdict

        verdict = await self._log.transact(work)
        told = {"workflow_id": dispatch.workflow_id, "life": life}
        if verdict == "swept":
            self._figures.swept += 1
            logger.warning("dispatch_swept", extra=told)
        elif verdict == "lost":
            logger.warning("dispatch_lost", extra=told)
        return verdict == "swept"

    def _end(
        self,
        tx: Transaction,
        dispatch: StoredDispatch,
        request: DispatchRequest,
        error: str = TERMINATED,
    ) -> Verdict | None:
        batch, attempt = end_records(tx, dispatch, request, error)
        if not tx.append(batch, key=end_key(dispatch.workflow_id, attempt)).fresh:
            return None  # its worker ended the attempt after all; the next sweep sees that
        return "swept"

    def _end_or_lose(
        self, tx: Transaction, dispatch: StoredDispatch, request: DispatchRequest
    ) -> Verdict | None:
        if cancel_requested(tx, request):
            return self._end(tx, dispatch, request, CANCELLED)
        if dispatch.lost:
            return None
        records = PumpRecords(
            self._envelopes.package,
            max_outstanding=self._figures.max_outstanding,
            now_ms=tx.now_ms,
        )
        tx.append([records.lost(dispatch)])
        return "lost"

    def _had_workflow(self, reader: Reader, dispatch: StoredDispatch) -> bool:
        """False for one that the pump is about to start, for the first time or once more."""
        if not dispatch.envelope_topic:
            return True
        cursor = reader.cursor(dispatch.envelope_topic, self._consumer_id)
        return dispatch.envelope_id <= cursor

    def _request(self, reader: Reader, dispatch: StoredDispatch) -> DispatchRequest:
        """The request as it was started, as far as the log tells."""
        record = _envelope(reader, dispatch)
        for request in self._envelopes.requests(record, reader.bindings.definition):
            binding = request.binding
            if dispatch.workflow_id == dispatch_workflow_id(
                binding.package, binding.trigger_id, request.event_id, request.replay
            ):
                return request.model_copy(update={"event": event_in(record)})
        raise StoreError(
            f"record {record.event_id} of topic {record.topic} is not the envelope of "
            f"{dispatch.workflow_id}; was the store replaced?"
        )


def _envelope(reader: Reader, dispatch: StoredDispatch) -> Record:
    address = EventAddress(topic=dispatch.envelope_topic, event_id=dispatch.envelope_id)
    if dispatch.begun_id:
        [begun] = reader.read(dispatch.begun_topic, after=dispatch.begun_id - 1, limit=1)
        address = EventAddress.read(begun.headers.get(headers.EVENT_ADDRESS, "")) or address
    found = reader.read(address.topic, after=address.event_id - 1, limit=1) if address.topic else []
    if not found or found[0].event_id != address.event_id:
        raise StoreError(f"the envelope of {dispatch.workflow_id} is not in the log")
    return found[0]


def end_records(
    reader: Reader, dispatch: StoredDispatch, request: DispatchRequest, error: str = TERMINATED
) -> tuple[list[Append], int]:
    """The records that end a dispatch, and the attempt they are about."""
    now_ms = reader.now_ms
    attempt = dispatch.started_attempt
    if attempt <= dispatch.ended_attempt:
        batch = cancelled(
            request,
            dispatch.ended_attempt,
            error=error,
            workflow_id=dispatch.workflow_id,
            now_ms=now_ms,
        )
        return batch, dispatch.ended_attempt + 1
    [begun] = reader.read(dispatch.begun_topic, after=dispatch.begun_id - 1, limit=1)
    outcome = AttemptOutcome(attempt=attempt, status="cancelled", error=error, final="cancelled")
    batch = ended(
        request,
        outcome,
        started_at_ms=begun.occurred_at_ms,
        now_ms=now_ms,
        workflow_id=dispatch.workflow_id,
    )
    return batch, attempt

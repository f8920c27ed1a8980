"""What a consumer does: claim as many jobs as it has free slots, and settle what has ended."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta

from temporalio import workflow
from temporalio.exceptions import ActivityError, is_cancelled_exception

from harn_temporal.bindings import Binding
from harn_temporal.consume_contracts import (
    ChildrenToCheck,
    ConsumeCounts,
    ConsumeRequest,
    ConsumeResult,
    ConsumeState,
    JobTicket,
    QueueWatch,
    Selected,
    Selection,
)
from harn_temporal.contracts import DispatchOutcome
from harn_temporal.workflows.activity_types import (
    CHECK_CHILDREN,
    SELECT_JOBS,
    WATCH_QUEUE,
)
from harn_temporal.workflows.calls import UNTIL_RECORDED, record
from harn_temporal.workflows.claim_renewal import renew_claims
from harn_temporal.workflows.consume_jobs import HeldJobs
from harn_temporal.workflows.job_dispatch import JobDispatch

CHECK_TIMEOUT = timedelta(minutes=1)
CLAIMS_AT_ONCE = 64
CHECK_INTERVAL = timedelta(minutes=1)
WATCH_LIFETIME = timedelta(minutes=10)
WATCH_HEARTBEAT = timedelta(seconds=30)
CANCEL_PATIENCE = timedelta(seconds=30)
"""How long the jobs of a cancelled consumer may take to end before their claims are given back."""

INLINE_PATIENCE = timedelta(seconds=10)
"""How long a run that is about to end waits for jobs in its own history, claiming no others."""

GO_ON_FOR = 1_000
"""Events, where jobs in the run's own history did not end meanwhile."""

NO_READY, LIMIT, PAUSED, BLOCKED = "empty", "limit", "paused", "blocked"
CANCELLED = "the consumer was cancelled"
ABANDONED = "the process of the consumer is gone"
DRAINED = "the drain has ended"


class Consumer:
    """The state of a consumer in one run of its workflow."""

    def __init__(self, request: ConsumeRequest) -> None:
        self._request = request
        self._jobs = HeldJobs(request.carried, request.reports, request.max_concurrent)
        self._dispatch = JobDispatch(request, self._jobs)
        self._counts = request.counts
        self._stopping = request.stopping
        self._since_ms = request.since_ms
        self._look = True  # whether there may be something to claim
        self._last = Selected()
        self._batches = 0
        self._watch: asyncio.Future[None] | None = None
        self._selecting: asyncio.Future[None] | None = None
        self._go_on_until = 0  # events, where a run could not end when it was long

    @property
    def state(self) -> ConsumeState:
        return ConsumeState(
            mode=self._request.mode,
            running=self._jobs.running,
            parked=self._jobs.parked,
            counts=self._counts,
            stopping=self._stopping,
            claims_after=self._request.claims_after,
            responses_after=self._request.responses_after,
        )

    def stop(self, reason: str) -> None:
        self._stopping = self._stopping or reason

    def parked(self, claim_id: str, *, parked: bool) -> None:
        job = self._jobs.find(claim_id)
        if job is not None:
            job.parked = parked
            self._look = self._look or parked

    def ended(self, claim_id: str, outcome: DispatchOutcome) -> None:
        self._jobs.end(claim_id, outcome=outcome)

    async def cancel_job(self, claim_id: str) -> None:
        """It ends like any other; nothing happens where it has ended."""
        job = self._jobs.find(claim_id)
        if job is not None:
            await self._dispatch.cancel(job)

    async def run(self) -> ConsumeResult:
        background = [
            asyncio.ensure_future(renew_claims(self._request, self._jobs, self._dispatch.cancel)),
            asyncio.ensure_future(self._check_carried()),
        ]
        try:
            try:
                ended = await self._consume()
                await self._wind_down(ended)
            except (asyncio.CancelledError, ActivityError) as error:
                if not is_cancelled_exception(error):
                    raise
                await self._cancel()
                raise
        finally:
            for task in background:
                task.cancel()
            self._end_watch()
        return ConsumeResult(
            counts=self._counts,
            ended=ended,
            claims_after=self._request.claims_after,
            responses_after=self._request.responses_after,
        )

    async def _consume(self) -> str:
        """Claim and settle until it is time to end; returns why that is."""
        while True:
            if self._stopping is not None:
                return self._stopping
            if self._history_is_long():
                await self._continue_as_new()
            wanted = self._wanted()
            if self._jobs.reports or (wanted and self._look):
                await self._batch(wanted)
                continue
            reason = self._reason_to_end()
            if reason is not None:
                return reason
            if wanted and self._request.mode == "serve" and self._watch is None:
                self._watch = asyncio.ensure_future(self._wait_for_jobs())
            await workflow.wait_condition(self._has_something_to_do)

    def _has_something_to_do(self) -> bool:
        return bool(
            self._jobs.reports
            or self._stopping is not None
            or (self._look and self._wanted())
            or self._reason_to_end() is not None
            or (self._watch is None and self._request.mode == "serve" and self._wanted())
        )

    def _wanted(self) -> int:
        """How many jobs to claim next."""
        wanted = min(self._jobs.free_slots, CLAIMS_AT_ONCE)
        limit = self._request.limit
        return wanted if limit is None else max(0, min(wanted, limit - self._counts.claimed))

    def _reason_to_end(self) -> str | None:
        """Of a consumer that has nothing to settle. Jobs that are parked keep no drain going."""
        if self._jobs.running or self._jobs.reports:
            return None
        if self._request.limit is not None and self._counts.claimed >= self._request.limit:
            return LIMIT
        if self._request.mode == "serve" or self._look:
            return None
        if self._last.paused:
            return PAUSED
        return BLOCKED if self._last.ready else NO_READY

    async def _batch(self, wanted: int) -> None:
        """Settle what has ended and claim up to `wanted` jobs, which begin at once.

        A cancellation does not interrupt it: the claims would be nobody's.
        """
        self._selecting = asyncio.ensure_future(self._select(wanted))
        await asyncio.shield(self._selecting)

    async def _select(self, wanted: int) -> None:
        self._batches += 1
        self._look = False
        excluded = self._jobs.keys_to_leave()
        # Locally: a slot that becomes free is filled without a way to the server and back. What was
        # claimed by a process that died before it could say so is told again for the same id.
        selected = await record(
            SELECT_JOBS,
            Selection(
                queue=self._request.queue,
                consumer_id=self._request.consumer_id,
                mode=self._request.mode,
                request_id=f"{workflow.info().run_id}/{self._batches}",
                ttl_ms=self._request.ttl_ms,
                max_deliveries=self._request.max_deliveries,
                limit=wanted,
                excluded_keys=excluded,
                since_ms=self._since_ms,
                reports=self._jobs.take_reports(),
            ),
            summary=f"claim up to {wanted}",
            task_queue=self._request.consume_queue,
        )
        self._jobs.settled()
        self._count(selected)
        if self._since_ms is None:
            self._since_ms = selected.now_ms
        if wanted:
            self._last = selected
            self._look = self._look or selected.claimed >= wanted
        if selected.abandoned:
            self.stop(ABANDONED)
        self._begin(selected.tickets, selected.bindings)
        for claim_id in selected.released:
            job = self._jobs.find(claim_id)
            if job is not None:
                await self._dispatch.drop(job)

    def _count(self, selected: Selected) -> None:
        for claim_id in selected.lost:
            workflow.logger.warning("claim_lost", extra={"claim_id": claim_id})
        counts = self._counts
        self._counts = ConsumeCounts(
            claimed=counts.claimed + selected.claimed,
            handled=counts.handled + selected.handled,
            acked=counts.acked + selected.acked,
            lost=counts.lost + len(selected.lost),
            released=counts.released + len(selected.released),
        )

    def _begin(self, tickets: Sequence[JobTicket], bindings: Sequence[Binding]) -> None:
        by_trigger = {binding.trigger_id: binding for binding in bindings}
        for ticket in tickets:
            if self._stopping is not None:
                self._jobs.report(ticket, release=self._stopping)
            else:
                self._dispatch.begin(ticket, by_trigger[ticket.trigger_id])

    async def _check_carried(self) -> None:
        """See after children of earlier runs that may have ended without a word."""
        while True:
            await workflow.sleep(CHECK_INTERVAL)
            carried = {job.ticket.workflow_id: job for job in self._jobs if job.carried}
            if not carried:
                continue
            found = await workflow.execute_activity(
                CHECK_CHILDREN.name,
                ChildrenToCheck(workflow_ids=tuple(carried)),
                result_type=CHECK_CHILDREN.output,
                task_queue=self._request.consume_queue,
                start_to_close_timeout=CHECK_TIMEOUT,
                retry_policy=UNTIL_RECORDED,
            )
            for each in found.ended:
                claim_id = carried[each.workflow_id].ticket.claim_id
                self._jobs.end(
                    claim_id, outcome=each.outcome, error=each.error, gone=each.outcome is None
                )

    async def _wait_for_jobs(self) -> None:
        """Have the control queue wait for jobs, so that an idle queue fills no history."""
        last = self._last
        try:
            await workflow.execute_activity(
                WATCH_QUEUE.name,
                QueueWatch(
                    queue=self._request.queue,
                    consumer_id=self._request.consumer_id,
                    blocked=last.ready,
                    paused=last.paused,
                    jobs_head=last.jobs_head,
                    claims_head=last.claims_head,
                    next_at_ms=last.next_at_ms,
                ),
                result_type=WATCH_QUEUE.output,
                task_queue=self._request.consume_queue,
                start_to_close_timeout=WATCH_LIFETIME,
                heartbeat_timeout=WATCH_HEARTBEAT,
                retry_policy=UNTIL_RECORDED,
                cancellation_type=workflow.ActivityCancellationType.TRY_CANCEL,
                summary="wait for jobs",
            )
        except ActivityError as error:
            if is_cancelled_exception(error):
                return  # by `_end_watch`; an error that nobody takes would be logged
            raise
        finally:
            self._watch = None
        self._look = True

    def _end_watch(self) -> None:
        if self._watch is not None:
            self._watch.cancel()

    async def _settle_all(self) -> None:
        while self._jobs.reports:
            await self._batch(0)

    async def _wind_down(self, why: str) -> None:
        """Give back what has not begun or is parked, and wait for what runs."""
        reason = self._stopping or (DRAINED if why != CANCELLED else why)
        if self._stopping is not None:
            for job in self._jobs:
                if not job.parked:
                    self._jobs.report(job.ticket, release=reason, unless_begun=True)
            await self._settle_all()
        while self._jobs or self._jobs.reports:
            for job in self._jobs:
                if job.parked:
                    await self._dispatch.drop(job)
                    self._jobs.report(job.ticket, error=f"not done: {reason}", release=reason)
            await self._settle_all()
            await workflow.wait_condition(
                lambda: (
                    not self._jobs
                    or bool(self._jobs.reports)
                    or any(job.parked for job in self._jobs)
                )
            )
        await self._dispatch.dropped_have_ended()

    async def _cancel(self) -> None:
        """Cancel the jobs by name, and leave their ends in the log."""
        self.stop(CANCELLED)
        if self._selecting is not None and not self._selecting.done():
            await self._selecting
        for job in self._jobs:
            await self._dispatch.cancel(job)
        try:
            await workflow.wait_condition(lambda: not self._jobs, timeout=CANCEL_PATIENCE)
        except TimeoutError:
            for job in self._jobs:
                self._jobs.end(job.ticket.claim_id, error=CANCELLED, release=CANCELLED)
        await self._settle_all()

    def _history_is_long(self) -> bool:
        info = workflow.info()
        length = info.get_current_history_length()
        long = info.is_continue_as_new_suggested() or length >= self._request.history_limit
        return long and length >= self._go_on_until

    async def _continue_as_new(self) -> None:
        """Continue as new, unless jobs in this very history go on for long: then later."""
        self._end_watch()
        try:
            await workflow.wait_condition(lambda: not self._jobs.inline, timeout=INLINE_PATIENCE)
        except TimeoutError:
            self._go_on_until = workflow.info().get_current_history_length() + GO_ON_FOR
            return
        while True:
            await self._dispatch.have_reported_by_signal()
            await self._settle_all()
            await workflow.wait_condition(workflow.all_handlers_finished)
            if not any(not job.carried for job in self._jobs) and not self._jobs.reports:
                break
        workflow.continue_as_new(
            self._request.model_copy(
                update={
                    "carried": self._jobs.carried(),
                    "reports": self._jobs.reports,
                    "counts": self._counts,
                    "stopping": self._stopping,
                    "since_ms": self._since_ms,
                }
            )
        )

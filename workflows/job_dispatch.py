"""How a consumer has its jobs dispatched: each in a child workflow, or in its own history."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.common import SearchAttributePair, TypedSearchAttributes, WorkflowIDReusePolicy
from temporalio.exceptions import ChildWorkflowError, FailureError, WorkflowAlreadyStartedError

from harn_temporal.bindings import Binding
from harn_temporal.consume_contracts import ConsumeRequest, JobTicket
from harn_temporal.contracts import (
    AttemptOutcome,
    DispatchOutcome,
    DispatchRequest,
    EventAddress,
    JobClaim,
)
from harn_temporal.workflows.consume_jobs import HeldJob, HeldJobs
from harn_temporal.workflows.consumer_link import REPORT_BY_SIGNAL, WORTH_TELLING
from harn_temporal.workflows.dispatch_page import (
    HARN_QUEUE,
    KEYWORD_LIMIT,
    priority_key,
    search_attributes,
)
from harn_temporal.workflows.dispatch_steps import Dispatch

LONGEST_INLINE_WAIT = timedelta(seconds=10)
"""A job that waits for longer gets a workflow of its own."""

SUMMARY_LIMIT = 200


class _HandedOverError(Exception):
    """A dispatch is to go on in a workflow of its own: from this outcome, or at its gates."""

    def __init__(self, outcome: AttemptOutcome | None) -> None:
        super().__init__()
        self.outcome = outcome


class _InlineWaits:
    def __init__(self, job: HeldJob) -> None:
        self._job = job

    def begins(self, outcome: AttemptOutcome | None, delay: timedelta | None) -> None:
        if delay is None or delay > LONGEST_INLINE_WAIT:
            raise _HandedOverError(outcome)
        self._job.parked = delay >= WORTH_TELLING

    def ends(self) -> None:
        self._job.parked = False


class JobDispatch:
    def __init__(self, request: ConsumeRequest, jobs: HeldJobs) -> None:
        self._request = request
        self._jobs = jobs
        self._dropped: list[HeldJob] = []

    def begin(self, ticket: JobTicket, binding: Binding) -> None:
        request = self._dispatch_request(ticket, binding)
        job = HeldJob(ticket.model_copy(update={"event": None}), child=not self._request.inline)
        self._jobs.add(job)
        run = self._run_inline if self._request.inline else self._run_child
        job.task = asyncio.create_task(run(job, request))

    async def cancel(self, job: HeldJob) -> None:
        """Ask for the job's end; it is reported like any other."""
        if not job.child:
            if job.task is not None:
                job.task.cancel()
            return
        await _begun(job)
        handle = workflow.get_external_workflow_handle(job.ticket.workflow_id)
        try:
            await handle.cancel()
        except FailureError as error:  # it has ended, or it will not begin under its claim
            workflow.logger.info("child_not_cancelled", extra={"error": str(error)})

    async def drop(self, job: HeldJob) -> None:
        """Cancel a job whose claim is given back, and wait for nothing."""
        await self.cancel(job)
        self._jobs.forget(job.ticket.claim_id)
        self._dropped.append(job)

    async def dropped_have_ended(self) -> None:
        """A drain's process goes when its consumer ends, and with it the worker of its children."""
        await workflow.wait_condition(
            lambda: all(job.task is None or job.task.done() for job in self._dropped)
        )

    async def have_reported_by_signal(self) -> None:
        """Have each child tell how it ends, since the run that can see that is about to end."""
        for job in [each for each in self._jobs if each.child and not each.carried]:
            await self._ask_to_report(job)

    async def _ask_to_report(self, job: HeldJob) -> None:
        await _begun(job)
        handle = workflow.get_external_workflow_handle(job.ticket.workflow_id)
        try:
            await handle.signal(REPORT_BY_SIGNAL)
        except FailureError:  # it has just ended: wait to see how
            if job.task is not None:
                await job.task
        else:
            job.carried = True

    async def _run_child(self, job: HeldJob, request: DispatchRequest) -> None:
        ticket = job.ticket
        try:
            child = await workflow.start_child_workflow(
                "DispatchWorkflow",
                request.model_copy(update={"consumer": workflow.info().workflow_id}),
                id=ticket.workflow_id,
                result_type=DispatchOutcome,
                parent_close_policy=workflow.ParentClosePolicy.ABANDON,
                id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
                search_attributes=self._search_attributes(request),
                priority=priority_key(ticket.priority),
                static_summary=_summary(request),
            )
            job.started = True
            outcome: DispatchOutcome = await child
        except WorkflowAlreadyStartedError:  # under this claim, by a run that was reset
            job.started = job.carried = True
        except ChildWorkflowError as error:
            text = f"the workflow {ticket.workflow_id} was ended from outside: {error.cause}"
            self._jobs.end(ticket.claim_id, error=text, gone=True)
        else:
            self._jobs.end(ticket.claim_id, outcome=outcome)

    async def _run_inline(self, job: HeldJob, request: DispatchRequest) -> None:
        ticket = job.ticket
        dispatch = Dispatch(request, dispatch_id=ticket.workflow_id, waits=_InlineWaits(job))
        try:
            outcome = await dispatch.run()
        except _HandedOverError as handed_over:
            job.child = job.parked = True
            resumed = dispatch.request.model_copy(update={"resume": handed_over.outcome})
            await self._run_child(job, resumed)
        else:
            self._jobs.end(ticket.claim_id, outcome=outcome)

    def _dispatch_request(self, ticket: JobTicket, binding: Binding) -> DispatchRequest:
        return DispatchRequest(
            store_id=self._request.store_id,
            binding=binding,
            event_id=ticket.event_id,
            trace_id=ticket.trace_id,
            tenant_id=ticket.tenant_id,
            address=EventAddress(topic=ticket.topic, event_id=ticket.job_event_id),
            event=ticket.event,
            replay_of_event_id=ticket.replay_of_event_id,
            search_attributes=self._request.search_attributes,
            heartbeat_timeout_ms=self._request.heartbeat_timeout_ms,
            claim=JobClaim(
                queue=self._request.queue,
                job_event_id=ticket.job_event_id,
                claim_id=ticket.claim_id,
            ),
            traceparent=ticket.traceparent,
        )

    def _search_attributes(self, request: DispatchRequest) -> TypedSearchAttributes:
        if not request.search_attributes:
            return TypedSearchAttributes.empty
        pairs: list[SearchAttributePair[Any]] = list(search_attributes(request))
        pairs.append(SearchAttributePair(HARN_QUEUE, self._request.queue[:KEYWORD_LIMIT]))
        return TypedSearchAttributes(pairs)


async def _begun(job: HeldJob) -> None:
    """Wait until the child can be reached by its name."""
    task = job.task
    await workflow.wait_condition(lambda: job.started or task is None or task.done())


def _summary(request: DispatchRequest) -> str:
    return f"{request.binding.binding_key}: {request.binding.handler.uri}"[:SUMMARY_LIMIT]

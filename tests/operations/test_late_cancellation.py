"""A cancellation that reaches the workflow together with the outcome of its attempt."""

from __future__ import annotations

import uuid
from contextlib import asynccontextmanager

import pytest
from temporalio import activity
from temporalio.worker import Worker

from harn_temporal.activities.attempt_log import AttemptLog
from harn_temporal.bindings import Binding, HandlerTarget
from harn_temporal.contracts import (
    AttemptOutcome,
    AttemptRequest,
    CancelledDispatch,
    DispatchEnd,
    DispatchOutcome,
    DispatchRequest,
)
from harn_temporal.dispatch_records import predicate_evaluated, skipped, trigger_key
from harn_temporal.events import new_event
from harn_temporal.headers import OUTCOME
from harn_temporal.ingestion import ingest
from harn_temporal.worker import workflow_runner
from harn_temporal.workflows.dispatch import DispatchWorkflow


async def a_request(log, when=None):
    binding = Binding(
        package="demo",
        trigger_id="on-push",
        kind="webhook",
        provider="github",
        handler=HandlerTarget(kind="local", uri="handlers::f"),
        when=when,
        fingerprint="f",
    )
    event = new_event(provider="github", kind="push", payload={})
    [taken] = await ingest(log, [binding], event, package="demo", only="on-push")
    return DispatchRequest(
        store_id=log.store_id,
        binding=binding,
        event_id=event.id,
        trace_id=event.trace_id,
        address=taken.address,
        event=event,
        search_attributes=False,
    )


def records(log, request, attempt):
    return AttemptLog(log, request, dispatch_id="d", run_id="r", attempt=attempt)


RETRIED = AttemptOutcome(attempt=1, status="failed", error="no", retry_in_ms=5_000)
DONE = AttemptOutcome(attempt=1, status="success", result={"n": 1}, final="succeeded")
"""What the log holds, while the workflow knows of no attempt that ended."""


@pytest.mark.parametrize(
    ("outcome", "end", "outcomes"),
    [
        (None, DispatchEnd(status="cancelled", attempts=0, error="cancelled"), ["cancelled"]),
        (
            RETRIED,
            DispatchEnd(status="cancelled", attempts=1, error="cancelled"),
            [None, "cancelled"],
        ),
        (DONE, DispatchEnd(status="succeeded", attempts=1, result={"n": 1}), ["succeeded"]),
    ],
)
async def test_the_log_decides_where_it_ends(log, outcome, end, outcomes):
    request = await a_request(log)
    if outcome is not None:
        await records(log, request, 1).start()
        await records(log, request, 1).end(outcome)
    assert await records(log, request, 1).cancel_dispatch() == end
    assert await records(log, request, 1).cancel_dispatch() == end  # tried again
    ends = [r for r in await log.read("trigger.outbox") if r.kind != "dispatch_started"]
    assert [record.headers.get(OUTCOME) for record in ends] == outcomes


async def test_a_predicate_that_said_no_has_ended_it(log):
    request = await a_request(log, {"kind": "cel", "source": "false"})
    batch = predicate_evaluated(request, passed=False, reason=None, latency_ms=1, now_ms=1)
    batch += skipped(request, "predicate", {}, workflow_id="d", now_ms=1)
    await log.append(batch, key=trigger_key("d"))
    end = await records(log, request, 1).cancel_dispatch()
    assert end == DispatchEnd(status="skipped", attempts=0)
    assert len(await log.read("trigger.outbox")) == 1


async def test_the_workflow_takes_the_end_from_the_log(temporal_client, log):
    """The attempt ends and the cancellation comes while no worker runs workflows."""
    request = await a_request(log)
    queue, ended = f"late-{uuid.uuid4()}", []

    @activity.defn(name="run_attempt")
    async def run_attempt(message: AttemptRequest) -> AttemptOutcome:
        return DONE

    @activity.defn(name="record_cancelled")
    async def record_cancelled(message: CancelledDispatch) -> DispatchEnd:
        ended.append(message.attempts)
        return DispatchEnd(status="succeeded", attempts=1, result={"n": 1})

    @asynccontextmanager
    async def workflows():
        async with Worker(
            temporal_client,
            task_queue=queue,
            workflows=[DispatchWorkflow],
            activities=[record_cancelled],
            workflow_runner=workflow_runner(),
            no_remote_activities=True,
        ):
            yield

    handle = await temporal_client.start_workflow(
        DispatchWorkflow.run, request, id=queue, task_queue=queue
    )
    async with workflows():
        await has_event(handle, "activity_task_scheduled_event_attributes")
    async with Worker(temporal_client, task_queue=queue, activities=[run_attempt]):
        await has_event(handle, "activity_task_completed_event_attributes")
    await handle.cancel()
    async with workflows():
        outcome = await handle.result()
    assert isinstance(outcome, DispatchOutcome)
    assert (outcome.status, outcome.attempt_count, outcome.result) == ("succeeded", 1, {"n": 1})
    assert ended == [0]  # it was told of the cancellation, and not of the outcome


async def has_event(handle, kind):
    async for event in handle.fetch_history_events(wait_new_event=True):
        if event.HasField(kind):
            return

"""What a selection gives a consumer, and what it says of the queue."""

from __future__ import annotations

import pytest

from harn_temporal.activities.queue_jobs import QueueActivities
from harn_temporal.consume_contracts import JobReport, Selection
from harn_temporal.contracts import DispatchRequest, EventAddress
from harn_temporal.eventlog.log import Append
from harn_temporal.events import new_event
from harn_temporal.headers import WORKFLOW_ID
from harn_temporal.queue.models import ClaimRef
from harn_temporal.queue.operations import WorkerQueue
from harn_temporal.registry import register
from harn_temporal.scheduler import Policy
from harn_temporal.scheduler_figures import SchedulerFigures, Series
from harn_temporal.temporal.starter import start_dispatch


@pytest.fixture
async def activities(queue):
    bindings = await register(queue.log, "consumer", queue.manifest.bindings)

    async def describe(workflow_id):
        raise AssertionError(workflow_id)

    def make(policy=None, figures=None):
        return QueueActivities(
            queue.log,
            lambda: {each.trigger_id: each for each in bindings},
            policy or Policy(),
            figures or SchedulerFigures(),
            describe,
        )

    return make


def selection(**changes):
    given = {
        "queue": "triage",
        "consumer_id": "worker-a",
        "mode": "drain",
        "request_id": "r/1",
        "ttl_ms": 60_000,
        "max_deliveries": 0,
        "limit": 10,
    }
    return Selection(**given | changes)


async def test_it_is_done_once_for_one_request(queue, activities):
    await queue.fill("works", 3)
    first = await activities().select_jobs(selection(limit=2))
    again = await activities().select_jobs(selection(limit=2))
    assert [each.claim_id for each in again.tickets] == [each.claim_id for each in first.tickets]
    assert (await queue.kinds())["job_claimed"] == 2
    assert first.ready


async def test_small_events_come_along_and_large_ones_stay_in_the_log(queue, activities):
    await queue.fill("works", 2)
    found = await activities().select_jobs(selection())
    assert [each.event.raw for each in found.tickets] == [{"n": 0}, {"n": 1}]
    assert {each.topic for each in found.tickets} == {"worker.triage"}
    await queue.fill("works", 1, padding="x" * 33_000)
    await queue.fill("works", 1)
    found = await activities().select_jobs(selection(request_id="r/2"))
    assert [each.event is None for each in found.tickets] == [True, False]
    await queue.fill("works", 10, padding="x" * 30_000)
    found = await activities().select_jobs(selection(request_id="r/3"))
    assert [each.event for each in found.tickets] == [None] * 10


async def test_own_claims_that_are_over_are_passed_over(queue, activities):
    [job] = await queue.fill("works")
    first = await activities().select_jobs(selection(ttl_ms=1))

    async def over():
        listed = await queue.log.query(lambda reader: reader.queues.listed("triage"))
        return listed[0].state == "ready"

    await queue.until(over)
    since = selection(request_id="r/2", since_ms=first.now_ms)
    assert (await activities().select_jobs(since)).tickets == ()
    other = since.model_copy(update={"consumer_id": "worker-b", "ttl_ms": 1})
    assert [each.job_event_id for each in (await activities().select_jobs(other)).tickets] == [job]
    await queue.until(over)
    mine = await activities().select_jobs(since.model_copy(update={"request_id": "r/3"}))
    assert [each.job_event_id for each in mine.tickets] == [job]


async def test_what_has_begun_is_not_given_back(queue, activities):
    await queue.fill("works", 2)
    found = await activities().select_jobs(selection())
    reports = tuple(
        JobReport(
            job_event_id=each.job_event_id,
            claim_id=each.claim_id,
            workflow_id=each.workflow_id,
            release="a test",
            unless_begun=True,
        )
        for each in found.tickets
    )
    headers = {WORKFLOW_ID: found.tickets[0].workflow_id, "attempt": "1"}
    await queue.log.append([Append("trigger.outbox", "dispatch_started", {}, headers)])
    settled = await activities().select_jobs(selection(request_id="r/2", limit=0, reports=reports))
    assert settled.released == (found.tickets[1].claim_id,)


async def test_counters(queue, activities):
    await queue.fill("works", 3, tenant="acme")
    figures = SchedulerFigures()
    capped = activities(Policy(max_concurrent_per_key=2), figures)
    await capped.select_jobs(selection())
    await capped.select_jobs(selection(request_id="r/2"))
    series = Series("triage", "tenant", "acme")
    assert dict(figures.selections) == {series: 2}
    assert dict(figures.deferrals) == {series: 2}
    assert dict(figures.starvation_promotions) == {}


async def test_a_lost_claim_is_told(queue, activities):
    [job] = await queue.fill("works")
    found = await activities().select_jobs(selection())
    await queue.take_over(job)
    triage = WorkerQueue(queue.log, "triage", Policy())
    ref = ClaimRef(job_event_id=job, claim_id=found.tickets[0].claim_id)
    assert (await triage.renew("worker-a", [ref])).lost == (ref,)
    report = JobReport(job_event_id=job, claim_id=ref.claim_id, error="stopped")
    told = await activities().select_jobs(selection(request_id="r/2", limit=0, reports=(report,)))
    assert told.lost == (ref.claim_id,)
    assert await queue.acked() == []


@pytest.mark.parametrize(("tenant", "key"), [("acme", "acme"), (None, ""), ("t" * 65, None)])
async def test_a_dispatch_carries_priority_and_tenant(queue, temporal_client, tenant, key):
    bindings = await register(queue.log, "consumer", queue.manifest.bindings)
    event = new_event(provider="github", kind="push", payload={}, tenant_id=tenant)
    request = DispatchRequest(
        store_id=queue.log.store_id,
        binding=bindings[0].model_copy(update={"priority": "high"}),
        event_id=event.id,
        trace_id=event.trace_id,
        tenant_id=tenant,
        address=EventAddress(topic="trigger.inbox.envelopes", event_id=1),
        event=event,
        search_attributes=False,
    )
    started = await start_dispatch(temporal_client, queue.log, request)
    described = await started.handle.describe()
    await started.handle.terminate()
    priority = described.raw_description.workflow_execution_info.priority
    assert priority.priority_key == 1
    if key is None:
        assert len(priority.fairness_key) == 64
    else:
        assert priority.fairness_key == key

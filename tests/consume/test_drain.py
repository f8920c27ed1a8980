"""A drain claims what is ready, dispatches it, and settles it."""

from __future__ import annotations

import pytest

from harn_temporal.eventlog.log import Append
from harn_temporal.queue.operations import WorkerQueue
from harn_temporal.scheduler import Policy

BOTH = pytest.mark.parametrize("inline", [False, True], ids=["child", "inline"])


@BOTH
async def test_jobs_are_handled_and_acked(queue, inline):
    jobs = await queue.fill("works", 20)
    result = await queue.drain(inline=inline)
    assert result.ended == "empty"
    assert (result.counts.claimed, result.counts.handled, result.counts.acked) == (20, 20, 20)
    assert await queue.acked() == jobs
    responses = await queue.responses()
    assert sorted(responses) == jobs
    assert {each["outcome"]["status"] for each in responses.values()} == {"succeeded"}
    assert [responses[job]["outcome"]["result"] for job in jobs] == list(range(20))
    assert (await queue.kinds())["job_claimed"] == 20


async def test_a_job_is_a_dispatch_with_the_name_of_its_claim(queue, temporal_client):
    [job] = await queue.fill("works", tenant="acme", priority="high")
    await queue.drain()
    [claim] = await queue.records("claims", "job_claimed")
    workflow_id = f"job/triage/{job}/{claim['claim_id']}"
    described = await temporal_client.get_workflow_handle(workflow_id).describe()
    attributes = {pair.key.name: pair.value for pair in described.typed_search_attributes}
    assert attributes["HarnQueue"] == "triage"
    assert attributes["HarnTenant"] == "acme"
    assert described.raw_description.workflow_execution_info.priority.priority_key == 1
    assert described.parent_id is not None
    started = await queue.log.read("tenant.acme.trigger.outbox")
    assert [record.kind for record in started] == ["dispatch_started", "dispatch_succeeded"]


@BOTH
async def test_what_fails_is_answered_and_left_to_its_ttl(queue, inline):
    [job] = await queue.fill("fails")
    result = await queue.drain(inline=inline)
    assert (result.counts.handled, result.counts.acked) == (1, 0)
    response = (await queue.responses())[job]
    assert response["outcome"]["status"] == "dlq"
    assert response["error"] is None
    assert dict(await queue.kinds()) == {"job_claimed": 1}


async def test_a_drain_runs_no_job_twice(queue):
    """Not even where the claim of a failed one is over long before the drain."""
    await queue.fill("fails", 2)
    [slow] = await queue.fill("slow")
    async with queue.worker():
        handle = await queue.start(ttl_ms=300, max_concurrent=3)

        async def expired():
            listed = await queue.log.query(lambda reader: reader.queues.listed("triage"))
            return [job.state for job in listed] == ["ready", "ready", "claimed"]

        await queue.until(expired)
        await queue.fill("works")
        (queue.folder / "go").touch()
        result = await handle.result()
    assert result.counts.handled == 4
    assert sorted(await queue.acked()) == [slow, 4]
    assert (await queue.kinds())["job_claimed"] == 4


@pytest.mark.parametrize(
    ("trigger_id", "words"),
    [("unknown", "has no trigger 'unknown'"), ("forwards", "is itself handled by worker://")],
)
async def test_a_job_that_no_binding_takes_is_answered(queue, trigger_id, words):
    [job] = await queue.fill(trigger_id)
    result = await queue.drain()
    assert (result.counts.handled, result.counts.acked) == (1, 0)
    response = (await queue.responses())[job]
    assert response["outcome"] is None
    assert words in response["error"]
    assert dict(await queue.kinds()) == {"job_claimed": 1}


async def test_a_job_whose_event_makes_no_sense_is_answered_and_stops_nothing(queue):
    payload = {
        "queue": "triage",
        "trigger_id": "works",
        "binding_key": "works@v1",
        "binding_version": 1,
        "event": {"id": "trigger_evt_x"},
    }
    await queue.log.append([Append("worker.triage", "trigger_dispatch", payload)])
    [good] = await queue.fill("works")
    result = await queue.drain()
    assert (result.counts.handled, result.counts.acked) == (2, 1)
    assert await queue.acked() == [good]
    response = (await queue.responses())[1]
    assert response["outcome"] is None
    assert "provider" in response["error"]


async def test_after_max_deliveries_the_last_response_is_acked(queue):
    [job] = await queue.fill("fails")
    for drain in range(2):
        result = await queue.drain(max_deliveries=2)
        assert result.counts.acked == drain
        if not drain:
            (claim,) = await queue.records("claims", "job_claimed")
            await queue.release(job, claim["claim_id"])
    assert await queue.acked() == [job]
    assert len(await queue.records("responses")) == 2


async def test_limit(queue):
    await queue.fill("works", 5)
    result = await queue.drain(limit=3)
    assert (result.ended, result.counts.claimed, result.counts.acked) == ("limit", 3, 3)


async def test_a_paused_queue_gives_nothing(queue):
    await queue.fill("works")
    triage = WorkerQueue(queue.log, "triage", Policy())
    await triage.pause("a test")
    assert (await queue.drain()).ended == "paused"
    await triage.resume()
    assert (await queue.drain()).counts.acked == 1


async def test_an_open_drain_is_adopted(queue):
    jobs = await queue.fill("slow", 2)
    async with queue.worker():
        first = await queue.start(max_concurrent=2)
        await queue.until(lambda: _exists(queue.folder / "begun-1"))
    async with queue.worker():
        (queue.folder / "go").touch()
        second = await queue.start(max_concurrent=2)
        assert second.id == first.id
        assert (await second.result()).counts.handled == 2
    assert await queue.acked() == jobs
    assert (await queue.kinds())["job_claimed"] == 2


async def _exists(path):
    return path.exists()

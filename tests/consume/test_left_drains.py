"""Drains whose process is gone."""

from __future__ import annotations

from temporalio.client import WorkflowExecutionStatus

from harn_temporal.consumers import confirmed, start_consumer
from harn_temporal.left_drains import LeftDrains
from harn_temporal.naming import drain_queue, job_workflow_id


async def left_by(queue, consumer_id):
    """A drain on a task queue that nobody works on, as Temporal lists it."""
    tasks = drain_queue(queue.log.store_id, queue.manifest.package, consumer_id)
    handle = await start_consumer(
        queue.client,
        queue.log,
        queue.manifest.package,
        queue.options(consumer_id=consumer_id),
        search_attributes=True,
        heartbeat_timeout_ms=30_000,
        tasks=tasks,
    )

    async def listed():
        return [one async for one in queue.client.list_workflows(f'WorkflowId = "{handle.id}"')]

    await queue.until(listed)
    return handle, tasks


async def test_what_a_drain_left_is_ended_by_a_worker_of_the_package(queue):
    jobs = await queue.fill("works", 3)
    handle, _ = await left_by(queue, "worker-a")
    async with queue.worker():
        result = await handle.result()
    assert result.counts.acked == 3
    assert await queue.acked() == jobs


async def test_a_drain_whose_process_is_there_is_left_alone(queue):
    _, gone = await left_by(queue, "worker-a")
    _, there = await left_by(queue, "worker-b")
    left = LeftDrains(queue.client, queue.log, queue.manifest.package, lambda _: ())
    async with confirmed(queue.log, ["worker-b"]):
        assert await left.left() == [gone]
    other = LeftDrains(queue.client, queue.log, "another-package", lambda _: ())
    assert await other.left() == []
    assert there != gone


async def test_a_drain_ends_after_the_workflow_of_a_job_that_it_gave_back(queue):
    """Nobody would work for that afterwards."""
    [job] = await queue.fill("retries_late")
    tasks = drain_queue(queue.log.store_id, queue.manifest.package, "worker-a")
    async with queue.worker(tasks=tasks):
        handle, _ = await left_by(queue, "worker-a")
        assert (await handle.result()).counts.released == 1
        [claim_id] = set(await queue.claims_of(job))
        child = queue.client.get_workflow_handle(job_workflow_id("triage", job, claim_id))
        assert (await child.describe()).status == WorkflowExecutionStatus.COMPLETED

"""Consumers whose process is gone."""

from __future__ import annotations

import asyncio

import pytest
from temporalio.client import WorkflowExecutionStatus

from harn_temporal import left_consumers
from harn_temporal.consumers import confirmed, start_consumer
from harn_temporal.errors import UsageError
from harn_temporal.left_consumers import LeftConsumers
from harn_temporal.naming import job_workflow_id
from harn_temporal.queue import presence


async def left_by(queue, consumer_id, mode="drain"):
    """A consumer on a task queue that nobody works on, as Temporal lists it."""
    handle = await start_consumer(
        queue.client,
        queue.log,
        queue.manifest.package,
        queue.options(mode, consumer_id=consumer_id),
        search_attributes=True,
        heartbeat_timeout_ms=30_000,
    )

    async def listed():
        return [one async for one in queue.client.list_workflows(f'WorkflowId = "{handle.id}"')]

    await queue.until(listed)
    return handle, queue.tasks(consumer_id)


async def test_what_a_consumer_left_is_ended_by_a_worker_of_the_package(queue):
    jobs = await queue.fill("works", 3)
    handle, _ = await left_by(queue, "worker-a")
    async with queue.worker(consumer_id=None):
        result = await handle.result()
    assert result.counts.acked == 3
    assert await queue.acked() == jobs


async def test_a_consumer_whose_process_is_there_is_left_alone(queue):
    _, gone = await left_by(queue, "worker-a")
    _, there = await left_by(queue, "worker-b")
    left = LeftConsumers(queue.client, queue.log, queue.manifest.package, lambda _: ())
    async with confirmed(queue.log, ["worker-b"]):
        assert await left.left() == [gone]
    other = LeftConsumers(queue.client, queue.log, "another-package", lambda _: ())
    assert await other.left() == []
    assert there != gone


async def test_a_drain_ends_after_the_workflow_of_a_job_that_it_gave_back(queue):
    """Nobody would work for that afterwards."""
    [job] = await queue.fill("retries_late")
    async with queue.worker():
        handle, _ = await left_by(queue, "worker-a")
        assert (await handle.result()).counts.released == 1
        [claim_id] = set(await queue.claims_of(job))
        child = queue.client.get_workflow_handle(job_workflow_id("triage", job, claim_id))
        assert (await child.describe()).status == WorkflowExecutionStatus.COMPLETED


async def test_a_consumer_whose_process_comes_back_is_given_back_to_it(queue, monkeypatch):
    """It serves on and on: whoever ended what it had left does not stay at its side."""
    monkeypatch.setattr(left_consumers, "ENDED_LOOK_S", 0.05)
    handle, tasks = await left_by(queue, "worker-a", "serve")
    left = LeftConsumers(queue.client, queue.log, queue.manifest.package, lambda _: ())
    ending = asyncio.create_task(left._end(tasks))
    async with confirmed(queue.log, ["worker-a"]), asyncio.timeout(20):
        await ending
        assert (await handle.describe()).status == WorkflowExecutionStatus.RUNNING
    await handle.terminate()


async def test_a_consumer_id_that_is_too_long_is_refused(queue):
    with pytest.raises(UsageError, match="at most 200 characters, and this one 201"):
        await queue.start(consumer_id="x" * 201)


async def test_a_process_that_ended_in_order_is_gone_at_once_and_can_come_back(queue):
    async def is_present():
        return await queue.log.query(lambda reader: presence.is_present(reader, "worker-a"))

    for _ in range(2):
        async with confirmed(queue.log, ["worker-a"]):
            assert await is_present()
        assert not await is_present()

"""Jobs of a worker queue whose handler is an agent that answers later."""

from __future__ import annotations

import asyncio
import threading
from datetime import timedelta

import pytest
from a2a.helpers.proto_helpers import new_text_part

from harn_temporal.consumers import ConsumerOptions
from harn_temporal.events import new_event
from harn_temporal.inspection.queue_overview import queue_jobs
from harn_temporal.queue.models import NewJob
from harn_temporal.queue.operations import enqueue_many
from harn_temporal.scheduler import Policy
from harn_temporal.worker import WorkerOptions, running_worker

FOLLOW = 'a2a = { follow = true, timeout = "1m", poll = "50ms" }'
BOUND_S = 40


class TwoTasks:
    """Work that goes on until the test says so."""

    def __init__(self):
        self.release = threading.Event()

    async def __call__(self, context, task):
        await task.start_work()
        while not self.release.is_set():  # noqa: ASYNC110 - set in the test's thread
            await asyncio.sleep(0.01)
        await task.add_artifact([new_text_part('{"score": 7}')])
        await task.complete()


@pytest.mark.parametrize("inline", [False, True], ids=["child", "inline"])
async def test_a_followed_task_holds_no_slot_and_its_job_is_acked(sdk_agent, agent_package, inline):
    work = TwoTasks()
    agent = sdk_agent("1.0", work)
    package = agent_package(agent.authority, FOLLOW)
    events = [new_event(provider="github", kind="push", payload={"n": n}) for n in range(2)]
    jobs = [
        NewJob(queue="triage", trigger_id="reviews", binding_key="reviews@v1", event=each.to_json())
        for each in events
    ]
    await enqueue_many(package.log, jobs)
    consumer = ConsumerOptions("triage", "worker-a", "serve", 1, ttl_ms=2000, inline=inline)
    options = WorkerOptions(pump=False, consume=(consumer,), grace=timedelta(seconds=5))
    async with running_worker(
        package.client, package.log, package.manifest, options, agents=package.agents
    ):
        # Were the slot held, the second task would not begin before the first has ended.
        await until(lambda: both_are_parked(package))
        assert len(agent.executor.tasks) == 2
        await until(lambda: claims(package, "claim_renewed"))
        assert await claims(package, "job_acked") == []
        work.release.set()
        await until(lambda: two_acked(package))
    responses = await package.log.read("worker.triage.responses")
    assert [r.payload["outcome"]["result"] for r in responses] == [{"score": 7}] * 2
    assert len(await claims(package, "job_claimed")) == 2


async def both_are_parked(package):
    parked = await package.log.query(
        lambda reader: queue_jobs(reader, "triage", Policy(), state="parked", after=0, limit=10)
    )
    return [view.job.job_event_id for view in parked] == [1, 2]


async def two_acked(package):
    return len(await claims(package, "job_acked")) == 2


async def claims(package, kind):
    records = await package.log.read("worker.triage.claims")
    return [record.payload["job_event_id"] for record in records if record.kind == kind]


async def until(fact):
    async with asyncio.timeout(BOUND_S):
        while not await fact():  # noqa: ASYNC110 - others make it true
            await asyncio.sleep(0.02)

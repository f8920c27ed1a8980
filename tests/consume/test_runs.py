"""A consumer beyond one run of its workflow: continued as new, stopped, cancelled, abandoned."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from temporalio.client import WorkflowFailureError
from temporalio.exceptions import CancelledError

from harn_temporal.headers import OUTCOME, WORKFLOW_ID
from harn_temporal.queue import presence
from harn_temporal.workflows import consume_steps

BOTH = pytest.mark.parametrize("inline", [False, True], ids=["child", "inline"])


@BOTH
async def test_continued_as_new_with_jobs_in_flight(queue, inline, temporal_client):
    jobs = await queue.fill("works", 30)
    async with queue.worker():
        handle = await queue.start(history_limit=60, inline=inline, max_concurrent=3)
        result = await handle.result()
        runs = await _runs(temporal_client, handle.id)
    assert runs >= 3
    assert await queue.acked() == jobs
    assert (result.counts.claimed, result.counts.acked) == (30, 30)
    assert (await queue.kinds())["job_claimed"] == 30


async def test_a_child_outlives_the_run_that_started_it(queue, temporal_client):
    [slow, waits] = [*await queue.fill("slow"), *await queue.fill("retries_soon")]
    works = await queue.fill("works", 10)
    async with queue.worker():
        handle = await queue.start(history_limit=20, max_concurrent=2)

        async def all_but_the_slow_one():
            return await queue.acked() == [waits, *works]

        await queue.until(all_but_the_slow_one)
        assert await _runs(temporal_client, handle.id) >= 2
        (queue.folder / "go").touch()
        result = await handle.result()
    assert await queue.acked() == [slow, waits, *works]
    assert (result.counts.handled, result.counts.claimed) == (12, 12)


@BOTH
async def test_cancelling_a_consumer_cancels_its_jobs(queue, inline):
    jobs = await queue.fill("slow", 2)
    await queue.fill("works", 1)
    async with queue.worker():
        handle = await queue.start(max_concurrent=2, inline=inline)
        await queue.until(lambda: _exists(queue.folder / "begun-1"))
        await handle.cancel()
        with pytest.raises(WorkflowFailureError) as error:
            await handle.result()
    assert isinstance(error.value.cause, CancelledError)
    responses = await queue.responses()
    assert sorted(responses) == jobs
    assert {each["outcome"]["status"] for each in responses.values()} == {"cancelled"}
    assert dict(await queue.kinds()) == {"job_claimed": 2}


@BOTH
async def test_a_shutdown_gives_back_what_has_not_begun(queue, inline):
    """Two handlers have slots, three jobs are claimed: the third one has not begun."""
    jobs = await queue.fill("slow", 3)
    serve = queue.options("serve", max_concurrent=3, inline=inline)
    async with queue.worker(serve, max_concurrent=2):

        async def two_begun():
            return len(list(queue.folder.glob("begun-*"))) == 2

        await queue.until(two_begun)

        async def claimed():
            return (await queue.kinds())["job_claimed"] == 3

        await queue.until(claimed)
        asyncio.get_running_loop().call_later(1, (queue.folder / "go").touch)
    [released] = await queue.records("claims", "job_released")
    assert released["reason"] == "the consumer's process was stopped"
    assert await queue.acked() == sorted(set(jobs) - {released["job_event_id"]})


async def test_a_serving_consumer_waits_for_more(queue):
    serve = queue.options("serve", inline=True)
    async with queue.worker(serve):
        for number in range(3):
            await queue.fill("works")

            async def acked(expected=number + 1):
                return len(await queue.acked()) == expected

            await queue.until(acked)
        later = await queue.fill("works", available_at_ms=_in_two_seconds())

        async def all_acked():
            return later[0] in await queue.acked()

        await queue.until(all_acked)


async def test_a_serving_consumer_whose_process_is_gone_ends(queue, monkeypatch):
    """Nobody confirms it: another worker of the package finishes its jobs and lets it end."""
    monkeypatch.setattr(presence, "GONE_MS", 500)
    await queue.fill("works")
    async with queue.worker():
        await queue.log.transact(lambda tx: presence.confirm(tx, "worker-a"))
        handle = await queue.start("serve")

        async def acked():
            return await queue.acked()

        await queue.until(acked)

        async def gone():
            return not await queue.log.query(lambda r: presence.is_present(r, "worker-a"))

        await queue.until(gone)
        await queue.fill("works")
        result = await handle.result()
    assert result.ended == "the process of the consumer is gone"
    assert len(await queue.acked()) == 1


async def test_a_drain_whose_process_is_gone_claims_nothing_more(queue, monkeypatch):
    monkeypatch.setattr(presence, "GONE_MS", 500)
    await queue.fill("works", 3)
    await queue.log.transact(lambda tx: presence.confirm(tx, "worker-a"))

    async def gone():
        return await queue.log.query(lambda r: presence.is_gone(r, "worker-a"))

    await queue.until(gone)
    result = await queue.drain()
    assert result.ended == "the process of the consumer is gone"
    assert (result.counts.claimed, await queue.acked()) == (0, [])


async def test_a_child_that_was_terminated_is_answered(queue, temporal_client):
    [job] = await queue.fill("slow")
    async with queue.worker():
        handle = await queue.start()
        await queue.until(lambda: _exists(queue.folder / "begun-0"))
        [claim] = await queue.records("claims", "job_claimed")
        child = temporal_client.get_workflow_handle(f"job/triage/{job}/{claim['claim_id']}")
        await child.terminate()
        result = await handle.result()
    assert (result.counts.handled, result.counts.acked) == (1, 0)
    response = (await queue.responses())[job]
    assert response["outcome"] is None
    assert "was ended from outside" in response["error"]
    assert await _terminated(queue) == [child.id]


async def test_a_child_that_is_terminated_in_a_later_run_is_answered(
    queue, temporal_client, monkeypatch
):
    """The run that would have seen its end is over."""
    monkeypatch.setattr(consume_steps, "CHECK_INTERVAL", timedelta(seconds=0.3))
    [slow] = await queue.fill("slow")
    works = await queue.fill("works", 10)
    async with queue.worker():
        handle = await queue.start(history_limit=20, max_concurrent=2)

        async def all_but_the_slow_one():
            return await queue.acked() == works

        await queue.until(all_but_the_slow_one)
        assert await _runs(temporal_client, handle.id) >= 2
        [claim_id] = {
            each["claim_id"]
            for each in await queue.records("claims", "job_claimed")
            if each["job_event_id"] == slow
        }
        child = temporal_client.get_workflow_handle(f"job/triage/{slow}/{claim_id}")
        await child.terminate()
        result = await handle.result()
    assert (result.counts.claimed, result.counts.handled, result.counts.acked) == (11, 11, 10)
    assert await _terminated(queue) == [child.id]
    response = (await queue.responses())[slow]
    assert response["outcome"] is None
    assert "was ended from outside" in response["error"]
    assert slow not in await queue.acked()


async def _terminated(queue):
    """The workflows of which the log says that they were terminated."""
    return [
        record.headers[WORKFLOW_ID]
        for record in await queue.log.read("trigger.outbox")
        if record.headers.get(OUTCOME) == "cancelled" and record.payload["error"] == "terminated"
    ]


async def _exists(path):
    return path.exists()


def _in_two_seconds():
    from harn_temporal.clock import system_clock

    return system_clock() + 2000


async def _runs(client, workflow_id):
    """How many runs a workflow had, by the chain of their first events."""
    handle = client.get_workflow_handle(workflow_id)
    count, run_id = 0, (await handle.describe()).run_id
    while run_id:
        count += 1
        history = await client.get_workflow_handle(workflow_id, run_id=run_id).fetch_history()
        started = history.events[0].workflow_execution_started_event_attributes
        run_id = started.continued_execution_run_id
    return count

"""A dispatch of a job that its consumer left gets its end in the log."""

from __future__ import annotations

from functools import partial

import pytest

from harn_temporal.activities import job_sweep
from harn_temporal.activities.job_sweep import JobSweep
from harn_temporal.headers import OUTCOME, WORKFLOW_ID
from harn_temporal.queue.settling import LOST
from harn_temporal.temporal.describing import describe_life


@pytest.fixture
def released():
    return []


@pytest.fixture
def sweep(queue, temporal_client, released, monkeypatch):
    monkeypatch.setattr(job_sweep, "LEFT_MS", -1_000)
    return JobSweep(
        queue.log,
        partial(describe_life, temporal_client),
        lambda _, workflow_id: released.append(workflow_id),
    )


async def ends(queue):
    return {
        record.headers[WORKFLOW_ID]: (record.headers[OUTCOME], record.payload.get("error"))
        for record in await queue.log.read("trigger.outbox")
        if OUTCOME in record.headers
    }


async def under_way(queue):
    return await queue.log.query(lambda reader: reader.dispatches.figures().in_flight)


async def begun(queue):
    async def there():
        return (queue.folder / "begun-0").exists()

    await queue.until(there)


async def leave(queue, temporal_client):
    """Have a child begun, and its consumer and itself ended without a word."""
    [job] = await queue.fill("slow")
    async with queue.worker():
        handle = await queue.start()
        await begun(queue)
        [claim] = await queue.records("claims", "job_claimed")
        child = temporal_client.get_workflow_handle(f"job/triage/{job}/{claim['claim_id']}")
        await temporal_client.get_workflow_handle(handle.id).terminate()
        await child.terminate()
    return job, child.id


async def test_what_was_taken_over_is_ended_once_nobody_runs_it(
    queue, temporal_client, sweep, released
):
    job, left = await leave(queue, temporal_client)
    await sweep.once()
    assert (await ends(queue), await under_way(queue)) == ({}, 1)  # its claim still holds the job
    await queue.take_over(job)
    await sweep.once()
    assert await ends(queue) == {left: ("cancelled", LOST)}
    assert released == [left]
    assert await under_way(queue) == 0
    before = len(await queue.log.read("trigger.outbox"))
    await sweep.once()
    assert len(await queue.log.read("trigger.outbox")) == before


async def test_what_temporal_still_runs_is_left_alone(queue, temporal_client, sweep):
    [job] = await queue.fill("slow")
    async with queue.worker():
        handle = await queue.start()
        await begun(queue)
        await queue.take_over(job)
        await sweep.once()
        assert await ends(queue) == {}
        (queue.folder / "go").touch()
        await handle.result()
    assert list((await ends(queue)).values()) == [("succeeded", None)]


async def test_one_that_cannot_be_read_does_not_stop_the_others(
    queue, temporal_client, sweep, caplog, monkeypatch
):
    job, left = await leave(queue, temporal_client)
    await queue.take_over(job)
    with monkeypatch.context() as patch:
        patch.setattr(job_sweep, "_record", _no_jobs(job_sweep._record))
        await sweep.once()
    assert [each.workflow_id for each in caplog.records if each.message == "sweep_skips"] == [left]
    await sweep.once()
    assert list(await ends(queue)) == [left]


def _no_jobs(record):
    return lambda reader, place: None if place.topic == "worker.triage" else record(reader, place)

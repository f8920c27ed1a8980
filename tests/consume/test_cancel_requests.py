"""Durable requests to cancel reach the jobs that a consumer runs, wherever their steps run."""

from __future__ import annotations

import pytest

from harn_temporal.eventlog.cancel_requests import CANCEL_REQUESTED
from harn_temporal.eventlog.log import Append
from harn_temporal.eventlog.topics import CANCEL_REQUESTS
from harn_temporal.operations.audit import Intent
from harn_temporal.operations.cancel import cancel
from harn_temporal.operations.targets import Selection, select

BOTH = pytest.mark.parametrize("inline", [False, True], ids=["child", "inline"])


@BOTH
async def test_cancelling_an_event_ends_its_running_job(queue, inline):
    [job] = await queue.fill("slow")
    async with queue.worker():
        handle = await queue.start(inline=inline)
        await queue.until(lambda: _exists(queue.folder / "begun-0"))
        [event_id] = {each["event"]["id"] for each in await queue.records("", None)}
        targets = await select(queue.log, Selection(event_id=event_id, jobs=True))
        assert [each.binding_key for each in targets] == ["slow@v1"]
        assert targets[0].progress.status == "in_progress"
        report = await cancel(queue.log, targets, Intent("cancel"))
        assert [each.done for each in report.items] == ["requested"]
        result = await handle.result()
    response = (await queue.responses())[job]
    assert response["outcome"]["status"] == "cancelled"
    # The request would cancel each further delivery as well.
    assert (result.counts.handled, result.counts.acked) == (1, 1)
    assert await queue.acked() == [job]


@BOTH
async def test_a_request_for_another_binding_leaves_the_job_alone(queue, inline):
    [job] = await queue.fill("slow")
    async with queue.worker():
        handle = await queue.start(inline=inline)
        await queue.until(lambda: _exists(queue.folder / "begun-0"))
        [event_id] = {each["event"]["id"] for each in await queue.records("", None)}
        for binding_key in ("slow@v9", "works@v1"):
            await _request(queue, binding_key, event_id)

        async def acted_on():
            return await queue.log.query(
                lambda reader: reader.cursor(CANCEL_REQUESTS, "harn-temporal.consumer.cancel") == 2
            )

        await queue.until(acted_on)
        (queue.folder / "go").touch()
        await handle.result()
    assert (await queue.responses())[job]["outcome"]["status"] == "succeeded"


@BOTH
async def test_a_job_that_waits_for_its_retry_is_reached(queue, inline):
    [job] = await queue.fill("retries_late")
    await queue.fill("slow")
    async with queue.worker():
        handle = await queue.start(max_concurrent=1, inline=inline)
        await queue.until(lambda: _exists(queue.folder / "begun-0"))
        event_id = (await queue.records(""))[0]["event"]["id"]
        await _request(queue, "retries_late@v1", event_id)

        async def acked():
            return await queue.acked() == [job]

        await queue.until(acked)
        (queue.folder / "go").touch()
        await handle.result()
    assert (await queue.responses())[job]["outcome"]["status"] == "cancelled"


@BOTH
async def test_a_claimed_job_that_has_not_begun_is_listed_and_reached(queue, inline):
    """It waits at a gate, so that no record tells under which binding it runs."""
    [first, second] = await queue.fill("takes_turns", 2)
    async with queue.worker():
        handle = await queue.start(inline=inline)

        async def one_waits():
            begun = list(queue.folder.glob("begun-*"))
            return len(begun) == 1 and await queue.waiting("concurrency") and begun[0].name[-1]

        waits = second if await queue.until(one_waits) == "0" else first
        event_id = (await queue.records(""))[waits - 1]["event"]["id"]
        targets = await select(queue.log, Selection(event_id=event_id, jobs=True))
        assert [(each.binding_key, each.progress.status) for each in targets] == [
            ("takes_turns@v1", "pending")
        ]
        await cancel(queue.log, targets, Intent("cancel"))

        async def acked():
            return await queue.acked() == [waits]

        await queue.until(acked)
        (queue.folder / "go").touch()
        await handle.result()
    statuses = {job: each["outcome"]["status"] for job, each in (await queue.responses()).items()}
    assert statuses == {waits: "cancelled", ({first, second} - {waits}).pop(): "succeeded"}


async def _request(queue, binding_key, event_id):
    payload = {"binding_key": binding_key, "event_id": event_id}
    await queue.log.append([Append(CANCEL_REQUESTS, CANCEL_REQUESTED, payload)])


async def _exists(path):
    return path.exists()

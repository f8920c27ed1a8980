"""Jobs that wait give up their slot and stay claimed; claims are renewed, or lost and known so."""

from __future__ import annotations

import pytest

BOTH = pytest.mark.parametrize("inline", [False, True], ids=["child", "inline"])


@BOTH
async def test_a_job_that_waits_for_hours_gives_up_its_slot_and_stays_claimed(queue, inline):
    [late] = await queue.fill("retries_late")
    async with queue.worker():
        handle = await queue.start(max_concurrent=1,
                                   ttl_ms=1500, inline=inline)  # fmt: skip
        [slow] = await queue.fill("slow")
        # With its one slot taken by the wait, the second job would never begin.
        await queue.until(lambda: _exists(queue.folder / "begun-0"))
        state = await queue.state(handle)
        assert (state.running, state.parked) == (1, 1)

        async def renewed_twice():
            renewals = await queue.records("claims", "claim_renewed")
            return sum(each["job_event_id"] == late for each in renewals) >= 2

        await queue.until(renewed_twice)
        (queue.folder / "go").touch()
        result = await handle.result()
    assert await queue.acked() == [slow]
    [released] = await queue.records("claims", "job_released")
    assert released["job_event_id"] == late
    assert released["reason"] == "the drain has ended"
    response = (await queue.responses())[late]
    assert response["outcome"] is None
    assert response["error"] == "not done: the drain has ended"
    assert (result.counts.handled, result.counts.acked, result.counts.released) == (2, 1, 1)
    assert (await queue.kinds())["job_claimed"] == 2


@BOTH
async def test_a_short_wait_is_waited_out(queue, inline):
    [job] = await queue.fill("retries_soon")
    async with queue.worker():
        # A job that has its slot back after the wait: the drain goes on while the other runs.
        await queue.fill("slow")
        handle = await queue.start(max_concurrent=1, inline=inline)
        await queue.until(lambda: _exists(queue.folder / "begun-0"))

        async def acked():
            return job in await queue.acked()

        await queue.until(acked)
        (queue.folder / "go").touch()
        await handle.result()
    assert (await queue.responses())[job]["outcome"]["attempt_count"] == 2


@BOTH
async def test_a_handler_of_three_ttls_is_renewed_and_runs_once(queue, inline):
    [job] = await queue.fill("slow")
    async with queue.worker():
        handle = await queue.start(ttl_ms=1000, inline=inline)

        async def three_ttls():
            claims = await queue.records("claims")
            begun = claims[0]["claimed_at_ms"]
            return any(each.get("renewed_at_ms", 0) - begun > 3000 for each in claims)

        await queue.until(lambda: _exists(queue.folder / "begun-0"))
        await queue.until(three_ttls)
        async with queue.worker(consumer_id="worker-b"):
            other = await queue.start(consumer_id="worker-b", ttl_ms=1000)
            assert (await other.result()).counts.claimed == 0
        (queue.folder / "go").touch()
        await handle.result()
    assert await queue.acked() == [job]
    assert (await queue.kinds())["job_claimed"] == 1


@BOTH
async def test_a_claim_that_was_taken_over_stops_its_handler(queue, inline):
    """As after a pause of the whole host: somebody else claimed the job in the meantime."""
    [job] = await queue.fill("slow")
    async with queue.worker():
        handle = await queue.start(ttl_ms=2000, inline=inline)
        await queue.until(lambda: _exists(queue.folder / "begun-0"))
        await queue.take_over(job)
        result = await handle.result()
    assert (result.counts.lost, result.counts.acked) == (1, 0)
    assert await queue.acked() == []
    response = (await queue.responses())[job]
    assert response["claim_lost"] is True
    assert response["error"].startswith("the claim was lost")
    assert response["outcome"]["status"] == "cancelled"


async def test_no_attempt_begins_under_a_lost_claim(queue):
    """The job is taken over while it waits for its retry."""
    [job] = await queue.fill("retries_soon")
    await queue.fill("slow")  # it keeps the drain going
    async with queue.worker():
        handle = await queue.start(ttl_ms=60_000)

        async def parked():
            return (await queue.state(handle)).parked == 1

        await queue.until(parked)
        await queue.take_over(job)

        async def answered():
            return job in await queue.responses()

        await queue.until(answered)
        (queue.folder / "go").touch()
        await handle.result()
    outbox = [record.kind for record in await queue.log.read("trigger.outbox")]
    assert outbox.count("dispatch_started") == 2
    response = (await queue.responses())[job]
    assert response["claim_lost"] is True
    assert "the claim was lost" in response["outcome"]["error"]


async def _exists(path):
    return path.exists()

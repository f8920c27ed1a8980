"""How many jobs a consumer holds at a time: as many as it has slots, and some that wait."""

from __future__ import annotations

import pytest

from harn_temporal.consume_contracts import PARKED_PER_SLOT

BOTH = pytest.mark.parametrize("inline", [False, True], ids=["child", "inline"])


@BOTH
async def test_no_more_is_claimed_than_slots_are_free(queue, inline):
    jobs = await queue.fill("slow", 5)
    async with queue.worker():
        handle = await queue.start(max_concurrent=2, inline=inline)

        async def begun():
            return len(list(queue.folder.glob("begun-*"))) == 2

        await queue.until(begun)
        state = await queue.state(handle)
        assert (state.running, state.counts.claimed) == (2, 2)
        assert (await queue.kinds())["job_claimed"] == 2
        (queue.folder / "go").touch()
        await handle.result()
    assert await queue.acked() == jobs


@BOTH
async def test_keys_with_parked_jobs_are_left_where_too_many_are_parked(queue, inline):
    parked = await queue.fill("retries_late", PARKED_PER_SLOT + 2, tenant="a")
    [other] = await queue.fill("slow", tenant="b")
    async with queue.worker():
        handle = await queue.start(max_concurrent=1, inline=inline)
        await queue.until(lambda: _exists(queue.folder / "begun-0"))
        state = await queue.state(handle)
        assert (state.running, state.parked) == (1, PARKED_PER_SLOT)
        (queue.folder / "go").touch()
        result = await handle.result()
    assert result.ended == "blocked"
    claimed = [each["job_event_id"] for each in await queue.records("claims", "job_claimed")]
    assert claimed == [*parked[:PARKED_PER_SLOT], other]
    assert await queue.acked() == [other]
    released = [each["job_event_id"] for each in await queue.records("claims", "job_released")]
    assert sorted(released) == parked[:PARKED_PER_SLOT]


async def _exists(path):
    return path.exists()

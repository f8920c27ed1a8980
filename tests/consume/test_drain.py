"""A drain claims what is ready, dispatches it, and settles it."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize("inline", [False, True])
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
    kinds = await queue.kinds()
    assert kinds["job_claimed"] == 20

"""What takes minutes; run by `make soak`."""

from __future__ import annotations

import pytest


@pytest.mark.soak
@pytest.mark.timeout(3600)
async def test_five_thousand_children_through_continue_as_new(queue):
    jobs = await queue.fill("works", 5000)
    async with queue.worker():
        handle = await queue.start(history_limit=2000, max_concurrent=16)
        result = await handle.result()
    assert (result.counts.claimed, result.counts.acked) == (5000, 5000)
    assert await queue.acked() == jobs

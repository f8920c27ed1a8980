"""Four workers at every gate, of which one after another is killed at a random moment."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from contextlib import AsyncExitStack

import pytest

WORKERS, KILLS, SEED = 4, 8, 20_261_201
CROWD, BATCHED, BURST = 60, 23, 12
RETRY = 'retry = { max = 20, backoff = "linear", delay_ms = 50 }'
KEY = 'key = "event.kind"'
OTHERS = {
    "alone": ("crowded", RETRY, "singleton = {}"),
    "together": ("members", RETRY, 'batch = { size = 5, timeout = "3s" }'),
    "last": ("works", RETRY, f'debounce = {{ {KEY}, period = "2s", max_wait = "4s" }}'),
}


@pytest.mark.soak
@pytest.mark.timeout(600)
async def test_nothing_is_lost_or_exceeds_its_limit(make_gated):
    limits = f'throttle = {{ {KEY}, period = "1s", max = 5 }}\nconcurrency = {{ {KEY}, max = 2 }}'
    gated = await make_gated("crowded", RETRY, limits, others=OTHERS)
    chance = random.Random(SEED)
    numbers = {"gated": CROWD, "alone": BURST, "together": BATCHED, "last": BURST}
    wanted = [(trigger, n) for trigger, count in numbers.items() for n in range(count)]
    chance.shuffle(wanted)
    handles = {trigger: {} for trigger in numbers}
    async with AsyncExitStack() as stack:
        workers = [await stack.enter_async_context(gated.process()) for _ in range(WORKERS)]

        async def kill_some():
            for kill in range(KILLS):
                await asyncio.sleep(chance.uniform(0, 2))  # a random moment, not a wait
                workers[kill % WORKERS].kill()
                workers[kill % WORKERS] = await stack.enter_async_context(gated.process())

        killing = asyncio.create_task(kill_some())
        for trigger, n in wanted:
            started = await gated.start(n, trigger=trigger, heartbeat_timeout_ms=2_000)
            handles[trigger][n] = started
        await killing
        ended = {}
        async with asyncio.timeout(300):
            for trigger, each in handles.items():
                ended[trigger] = {n: await handle.result() for n, handle in each.items()}
    statuses = {
        name: Counter(each.status for each in found.values()) for name, found in ended.items()
    }
    assert statuses["gated"] == {"succeeded": CROWD}
    for trigger in ("alone", "last"):
        assert statuses[trigger]["succeeded"] >= 1
        assert statuses[trigger]["succeeded"] + statuses[trigger]["skipped"] == BURST
    batches = [each.result for each in ended["together"].values() if each.status == "succeeded"]
    assert sorted(n for batch in batches for n in batch) == list(range(BATCHED))
    assert max(len(batch) for batch in batches) <= 5
    for trigger, most in (("gated", 2), ("alone", 1)):
        counts = [int(line) for line in (gated.folder / trigger / "counts").read_text().split()]
        assert max(counts) <= most
    [head] = await gated.log.topics("trigger.throttle.")
    hits = [
        record.payload["at_ms"]
        for record in await gated.log.read(head.topic)
        if record.kind == "throttle_acquired"
    ]
    assert len(hits) == CROWD
    assert all(late - early >= 1_000 for early, late in zip(hits, hits[5:], strict=False))
    gates = await gated.log.query(lambda reader: reader.gates.page())
    assert [
        (each.name, each.held, each.waiting) for each in gates if each.held or each.waiting
    ] == []

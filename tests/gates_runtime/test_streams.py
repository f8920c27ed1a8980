"""Debounce under a stream of events, with a worker that is killed in the middle of it."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

PERIOD_MS = 3_000
LASTS_MS = 4_500
QUIET = 'debounce = { key = "event.kind", period = "3s" }'
CAPPED = 'debounce = { key = "event.kind", period = "3s", max_wait = "4s" }'


async def test_a_steady_stream_fires_once_it_is_quiet_or_at_its_longest_wait(make_gated):
    gated = await make_gated("works", QUIET, others={"capped": ("works", CAPPED)})
    handles = {"gated": [], "capped": []}

    async def records(trigger, kind):
        head = f"trigger.debounce.{trigger}"
        found = [r for t in await gated.log.topics(head) for r in await gated.log.read(t.topic)]
        return [r for r in found if r.kind == kind]

    async def lasted_ms():
        """Start one more of each, and wait until they are seen; how long the stream lasts now."""
        for trigger, started in handles.items():
            started.append(await gated.start(len(started), trigger=trigger))

        async def told():
            seen = [len(await records(trigger, "debounce_seen")) for trigger in handles]
            return seen == [len(handles["gated"])] * 2

        await gated.until(told)
        seen = await records("gated", "debounce_seen")
        return seen[-1].occurred_at_ms - seen[0].occurred_at_ms

    async with gated.process() as victim, gated.process():
        while await lasted_ms() < LASTS_MS // 3:
            pass
        for started in handles.values():  # one that is under way would cost a timeout of 10 s
            await gated.outcomes(started[:-1])
        victim.kill()
        await victim.wait()
        while await lasted_ms() < LASTS_MS:
            pass
        outcomes = {name: await gated.outcomes(each) for name, each in handles.items()}
    seen = await records("gated", "debounce_seen")
    gaps = [late.occurred_at_ms - early.occurred_at_ms for early, late in pairwise(seen)]
    assert max(gaps) < PERIOD_MS  # it was a steady stream, with the kill in it
    for trigger, fired in (("gated", 1), ("capped", 2)):
        ended = outcomes[trigger]
        assert Counter(each.status for each in ended) == {
            "succeeded": fired,
            "skipped": len(ended) - fired,
        }
        assert (ended[-1].status, ended[-1].result) == ("succeeded", len(ended) - 1)
        assert len(await records(trigger, "debounce_selected")) == fired

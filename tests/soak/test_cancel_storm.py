"""Dispatches at every stage are cancelled while `up` is killed again and again: each ends once."""

import collections
import json
import random
import signal
import time
from typing import Any

import pytest

OF_EACH = 35
ROUNDS = 6
SEED = 20_260_102

STAGES = {
    "runs-async": ("runs_async", ""),
    "runs-def": ("runs_def", ""),
    "waits": ("fails", 'retry = { max = 5, backoff = "linear", delay_ms = 36000000 }'),
    "held-back": ("runs_async", "concurrency = { max = 1 }"),
    "quick": ("quick", 'retry = { max = 20, backoff = "linear", delay_ms = 100 }'),
    "asked": ("quick", 'when = "asked"\nretry = { max = 20, backoff = "linear", delay_ms = 100 }'),
}

MANIFEST = '[package]\nname = "storm"\n' + "".join(
    f"""
[[triggers]]
id = "{stage}"
kind = "webhook"
provider = "webhook"
match = {{ events = ["{stage}"] }}
handler = "{handler}"
{lines}
"""
    for stage, (handler, lines) in STAGES.items()
)

HANDLERS = """
import asyncio
import time

async def runs_async(event):
    await asyncio.Event().wait()

def runs_def(event, context):
    while not context.cancelled:
        time.sleep(0.02)

async def fails(event):
    raise RuntimeError("no")

async def quick(event):
    await asyncio.sleep(0.2)

async def asked(event):
    await asyncio.sleep(1.5)
    return True
"""


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_every_dispatch_ends_once(up: Any) -> None:
    chance = random.Random(SEED)
    kinds = [stage for stage in STAGES for _ in range(OF_EACH)]
    chance.shuffle(kinds)
    up.write(MANIFEST, HANDLERS)
    ids = up.ingest([(kind, {"n": number}) for number, kind in enumerate(kinds)])
    numbers = list(range(len(kinds)))
    chance.shuffle(numbers)

    up.start()
    up.until(lambda: up.records("trigger.outbox"))
    for turn in range(ROUNDS):
        some = sorted(numbers[turn::ROUNDS])
        time.sleep(chance.uniform(0, 2))  # random moments, not waits for something
        up.run("trigger", "cancel", "--where", f"event.provider_payload.raw.n in {some}")
        time.sleep(chance.uniform(0, 2))
        assert up.end(signal.SIGKILL) == -signal.SIGKILL
        up.start()
    up.until(lambda: len(up.outcomes()) >= len(kinds))
    assert up.end(signal.SIGTERM) == 0

    stage_of = dict(zip(ids, kinds, strict=True))
    ends = up.outcomes()
    assert sorted(each["headers"]["event_id"] for each in ends) == sorted(ids)
    outcomes = collections.defaultdict(set)
    for each in ends:
        stage = stage_of[each["headers"]["event_id"]]
        outcomes[stage].add(each["headers"]["harn_temporal.outcome"])
    for stage in ("runs-async", "runs-def", "waits", "held-back"):
        assert outcomes[stage] == {"cancelled"}
    for stage in ("quick", "asked"):
        assert outcomes[stage] <= {"cancelled", "succeeded"}
    assert json.loads(up.run("log", "verify", "--json"))["intact"] is True

"""`up` is killed again and again, server and all: every event ends once, and nothing is lost."""

import collections
import json
import random
import re
import signal
import time
from typing import Any

import pytest

EVENTS = 500
KILLS = 12
SEED = 20_260_101

MANIFEST = """
[package]
name = "soak"

[[triggers]]
id = "work"
kind = "webhook"
provider = "webhook"
match = { events = ["ping"] }
handler = "work"
retry = { max = 20, backoff = "linear", delay_ms = 100 }
"""

HANDLER = """
import asyncio

async def work(event, context):
    await asyncio.sleep(0.05)
    if context.attempt == 1 and event.raw["number"] % 3 == 0:
        raise RuntimeError("the first attempt of every third event fails")
    return event.raw["number"]
"""


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_every_event_ends_once(up: Any) -> None:
    up.write(MANIFEST, HANDLER)
    up.ingest([("ping", {"number": number}) for number in range(EVENTS)])
    chance = random.Random(SEED)

    def ended() -> int:
        (trigger,) = json.loads(up.run("trigger", "ls", "--json"))["triggers"]
        figures = trigger["figures"]
        return figures["dispatches"] - figures["running"] - figures["retrying"]

    up.start()
    for kill in range(KILLS):
        enough = kill * EVENTS // (2 * KILLS) + 1
        up.until(lambda enough=enough: ended() >= enough)
        time.sleep(chance.uniform(0, 1))  # a random moment, not a wait for something
        assert up.end(signal.SIGKILL) == -signal.SIGKILL
        up.start()
    up.until(lambda: ended() >= EVENTS)
    assert up.end(signal.SIGTERM) == 0

    outcomes = up.outcomes()
    assert collections.Counter(record["kind"] for record in outcomes) == {
        "dispatch_succeeded": EVENTS
    }
    assert sorted(record["payload"]["result"] for record in outcomes) == list(range(EVENTS))
    ends = collections.Counter(
        (record["headers"]["event_id"], record["headers"]["attempt"])
        for record in up.records("trigger.outbox")
        if re.fullmatch("dispatch_(succeeded|failed)", record["kind"])
    )
    assert set(ends.values()) == {1}
    assert json.loads(up.run("log", "verify", "--json"))["intact"] is True

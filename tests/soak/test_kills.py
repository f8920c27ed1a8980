"""`up` is killed again and again, server and all: every event ends once, and nothing is lost."""

import asyncio
import collections
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harn_temporal.eventlog import StoreSettings, open_event_log
from harn_temporal.events import new_event
from harn_temporal.ingestion import ingest
from harn_temporal.manifest import load_manifest
from harn_temporal.registry import register

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


@pytest.fixture
def environment() -> dict[str, str]:
    ours = ("HARN_", "TEMPORAL_")
    return {name: value for name, value in os.environ.items() if not name.startswith(ours)}


class Up:
    """`harn-temporal up`, started anew whenever it was killed."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self._folder = folder
        self._environment = environment
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        program = Path(sys.executable).parent / "harn-temporal"
        with (self._folder / "up.log").open("ab") as log:
            self._process = subprocess.Popen(
                [program, "up"], cwd=self._folder, env=self._environment, stdout=log, stderr=log
            )

    def end(self, number: int) -> int:
        assert self._process is not None
        self._process.send_signal(number)
        return self._process.wait(90)


async def fill(folder: Path) -> None:
    manifest = load_manifest(folder / "harn.toml")
    log = await open_event_log(StoreSettings("sqlite", folder / ".harn/orchestrator/events.sqlite"))
    bindings = await register(log, manifest.package, manifest.bindings)
    for number in range(EVENTS):
        event = new_event(provider="webhook", kind="ping", payload={"number": number})
        await ingest(log, bindings, event, package=manifest.package)
    await log.close()


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_every_event_ends_once(tmp_path: Path, environment: dict[str, str]) -> None:
    (tmp_path / "harn.toml").write_text(MANIFEST)
    (tmp_path / "lib.py").write_text(HANDLER)
    asyncio.run(fill(tmp_path))
    chance = random.Random(SEED)
    up = Up(tmp_path, environment)

    def read(*arguments: str) -> str:
        program = Path(sys.executable).parent / "harn-temporal"
        done = subprocess.run(
            [program, *arguments], cwd=tmp_path, env=environment, capture_output=True, text=True,
            check=False, timeout=60,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def ended() -> int:
        (trigger,) = json.loads(read("trigger", "ls", "--json"))["triggers"]
        figures = trigger["figures"]
        return figures["dispatches"] - figures["running"] - figures["retrying"]

    def until(enough: int) -> None:
        deadline = time.monotonic() + 240
        while ended() < enough:
            assert time.monotonic() < deadline, (tmp_path / "up.log").read_text()[-5000:]
            time.sleep(0.2)

    up.start()
    for kill in range(KILLS):
        until(kill * EVENTS // (2 * KILLS) + 1)
        time.sleep(chance.uniform(0, 1))  # a random moment, not a wait for something
        assert up.end(signal.SIGKILL) == -signal.SIGKILL
        up.start()
    until(EVENTS)
    assert up.end(signal.SIGTERM) == 0

    records = [
        json.loads(line) for line in read("log", "read", "trigger.outbox", "--json").splitlines()
    ]
    outcomes = [record for record in records if "harn_temporal.outcome" in record["headers"]]
    assert collections.Counter(record["kind"] for record in outcomes) == {
        "dispatch_succeeded": EVENTS
    }
    assert sorted(record["payload"]["result"] for record in outcomes) == list(range(EVENTS))
    ends = collections.Counter(
        (record["headers"]["event_id"], record["headers"]["attempt"])
        for record in records
        if re.fullmatch("dispatch_(succeeded|failed)", record["kind"])
    )
    assert set(ends.values()) == {1}
    assert json.loads(read("log", "verify", "--json"))["intact"] is True

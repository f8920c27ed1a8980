"""A pump that is killed with SIGKILL between admission and the move of its cursor."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from harn_temporal.naming import pump_workflow_id
from harn_temporal.worker import WorkerOptions, running_worker

PROGRAM = Path(__file__).with_name("pump_process.py")
LIB = """
def handle(event):
    with open(event.raw["folder"] + "/calls", "a") as calls:
        calls.write(f"{event.raw['n']}\\n")
"""


@pytest.fixture
def backend():
    return "sqlite"


@pytest.mark.parametrize(
    "count", [60, pytest.param(500, marks=[pytest.mark.soak, pytest.mark.timeout(600)])]
)
async def test_each_event_is_dispatched_once(
    temporal_client, make_package, harness, tmp_path, count
):
    package = make_package(LIB, harness.trigger("handle", harness.FAST))
    log = package.log
    sent = []
    for n in range(count):
        [taken] = await package.ingest(harness.event({"n": n, "folder": str(tmp_path)}))
        sent.append(taken.event_id)
    pump = temporal_client.get_workflow_handle(pump_workflow_id(log.store_id, "demo"))
    for _ in range(2):
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            str(PROGRAM),
            temporal_client.service_client.config.target_host,
            str(package.manifest.path),
            str(tmp_path / "events.sqlite"),
            "1" if count < 100 else "15",
            stdout=asyncio.subprocess.PIPE,
        )
        try:
            assert await asyncio.wait_for(process.stdout.readline(), 60) == b"admitted\n"
        finally:
            process.kill()
            await process.wait()
        await pump.terminate()  # or the next one waits for the killed one's heartbeat
    assert await log.read("trigger.inbox.envelopes", limit=1)
    manifest = replace(package.manifest, max_outstanding=64)
    async with running_worker(temporal_client, log, manifest, WorkerOptions(max_concurrent=32)):

        async def all_ended():
            records = await log.read("trigger.outbox", limit=10_000)
            ended = [r for r in records if "harn_temporal.outcome" in r.headers]
            return ended if len(ended) >= count else None

        ended = await harness.until(all_ended, 60 if count < 100 else 500)
    assert Counter(r.headers["event_id"] for r in ended) == dict.fromkeys(sent, 1)
    assert {(r.headers["harn_temporal.outcome"], r.payload.get("error")) for r in ended} == {
        ("succeeded", None)
    }
    calls = (tmp_path / "calls").read_text().split()
    assert Counter(calls) == {str(n): 1 for n in range(count)}
    lifecycle = await log.read("orchestrator.lifecycle", limit=10_000)
    admitted = Counter(
        r.payload["trigger_event_id"] for r in lifecycle if r.kind == "pump_admitted"
    )
    assert admitted == dict.fromkeys(sent, 1)

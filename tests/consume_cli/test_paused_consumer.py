"""A consumer whose process stands still for longer than its claims hold."""

from __future__ import annotations

import json
import signal

LIB = """
import asyncio
from pathlib import Path

HERE = Path(__file__).parent


async def on_task(event):
    (HERE / "begun").touch()
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        (HERE / "stopped").touch()
        raise
"""


def test_it_learns_that_its_job_was_taken_over(place):
    other = place.folder / "other"
    other.mkdir()
    consumer = place.folder / "consumer"
    (other / "lib.py").write_text((consumer / "lib.py").read_text())
    (other / "harn.toml").write_text((consumer / "harn.toml").read_text())
    (consumer / "lib.py").write_text(LIB)
    assert place.produce().code == 0
    first = place.start(
        "queue", "drain", "triage", "--consumer-id", "worker-a", "--claim-ttl", "1s", "--json",
        "--config", "consumer/harn.toml", "--state-dir", "./state",
    )  # fmt: skip
    place.eventually((consumer / "begun").exists)
    first.send_signal(signal.SIGSTOP)

    def expired():
        return place.queue("jobs", "triage", "--json").json["jobs"][0]["claim"] is None

    place.eventually(expired)
    second = place.queue("drain", "triage", "--consumer-id", "worker-b", "--json", config="other")
    assert second.code == 0, second.err
    assert (second.json["drained"], second.json["acked"]) == (1, 1)
    first.send_signal(signal.SIGCONT)
    assert first.wait(60) == 1

    assert (consumer / "stopped").exists()
    result = json.loads((place.folder / "out-0").read_text())
    assert (result["drained"], result["acked"], result["lost"]) == (1, 0, 1)
    [response] = result["responses"]
    assert response["claim_lost"] is True
    assert response["error"].startswith("the claim was lost")
    assert "claim_lost" in (place.folder / "err-0").read_text()
    read = place("log", "read", "worker.triage.claims", "--json", "--state-dir", "./state")
    acks = [record for record in read.out.splitlines() if "job_acked" in record]
    assert len(acks) == 1
    assert "worker-b" in acks[0]

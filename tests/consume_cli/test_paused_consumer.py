"""A consumer whose process stands still for longer than its claims hold."""

from __future__ import annotations

import json
import signal

from harn_temporal.eventlog import StoreSettings, open_event_log
from harn_temporal.queue.presence import is_present

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


async def test_a_drain_confirms_that_its_process_is_there(place):
    """Without that, its workflow would go on claiming after the process was killed."""
    assert place.produce(slow=True).code == 0
    drain = place.start(
        "queue", "drain", "triage", "--consumer-id", "worker-a",
        "--config", "consumer/harn.toml", "--state-dir", "./state",
    )  # fmt: skip
    place.eventually(lambda: place.handled)
    log = await open_event_log(StoreSettings("sqlite", place.folder / "state/events.sqlite"))
    assert await log.query(lambda reader: is_present(reader, "worker-a"))
    assert not await log.query(lambda reader: is_present(reader, "worker-b"))
    await log.close()
    (place.folder / "consumer/go").touch()
    assert drain.wait(60) == 0

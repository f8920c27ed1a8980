"""The embedded server loses its database: `recover` brings back what was under way."""

import json
import signal
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

MANIFEST = """
[package]
name = "lost"
[orchestrator]
pumps.max_outstanding = 24

[[triggers]]
id = "retried"
kind = "webhook"
provider = "webhook"
match = { events = ["retried"] }
handler = "retried"
retry = { max = 5, backoff = "linear", delay_ms = 20000 }

[[triggers]]
id = "slow"
kind = "webhook"
provider = "webhook"
match = { events = ["slow"] }
handler = "slow"
"""

HANDLERS = """
import asyncio
import pathlib

def retried(event, context):
    if context.attempt == 1:
        raise RuntimeError("once")
    return context.attempt

async def slow(event):
    if not pathlib.Path("go").exists():
        await asyncio.Event().wait()
"""


def server_runs(state: Path) -> bool:
    for arguments in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # it has ended meanwhile
            if str(state / "temporal.sqlite").encode() in arguments.read_bytes():
                return True
    return False


@pytest.mark.soak
@pytest.mark.timeout(300)
def test_nothing_is_lost_with_temporals_state(up: Any) -> None:
    up.write(MANIFEST, HANDLERS)
    kinds = ["retried"] * 3 + ["slow"] * 30
    ids = up.ingest([(kind, {}) for kind in kinds])

    def figures() -> dict[str, int]:
        found: dict[str, int] = json.loads(up.run("inspect", "--json"))["dispatcher"]
        return found

    def begun() -> bool:
        found = figures()
        return found["in_flight"] == 16 and found["retry_queue_depth"] == 3

    up.start()
    up.until(begun, 60)
    assert up.end(signal.SIGKILL) == -signal.SIGKILL
    state = up.folder / ".harn/orchestrator"
    up.until(lambda: not server_runs(state), 60)  # it ends by itself when nobody needs it
    for file in state.glob("temporal.sqlite*"):
        file.unlink()
    (up.folder / "go").touch()

    def listed(*options: str) -> list[dict[str, Any]]:
        ran = up.run("recover", "--envelope-age", "0s", "--json", *options)
        found: list[dict[str, Any]] = json.loads(ran)["envelopes"]
        return [each for each in found if each["lost"]]

    up.start()
    up.until(lambda: len(up.outcomes()) == 6, 60)  # those that no workflow had begun for
    up.until(lambda: len(listed("--dry-run")) == 27, 60)
    assert sum(each["attempts"] for each in listed("--dry-run")) == 19
    assert len(listed("--yes")) == 27
    up.until(lambda: len(up.outcomes()) == len(ids), 90)
    assert up.end(signal.SIGTERM) == 0
    ends = up.outcomes()
    assert sorted(each["headers"]["event_id"] for each in ends) == sorted(ids)
    assert {each["headers"]["harn_temporal.outcome"] for each in ends} == {"succeeded"}
    again = [each["payload"]["result"] for each in ends]
    assert sorted(result for result in again if result is not None) == [2, 2, 2]

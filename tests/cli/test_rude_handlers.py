"""Handlers that take away what they share with the program that runs them."""

from __future__ import annotations

import signal

import pytest

RUDE = """
import asyncio
import sys


def greet(event, context):
    sys.stdout.close()
    sys.stderr.close()
    context.log.info("logged by %s", event.raw["title"])
    return "silenced"


async def slow(event):
    asyncio.get_running_loop().stop()
"""


@pytest.fixture
def rude(program):
    lib = program.folder / "lib.py"
    lib.write_text(lib.read_text() + RUDE)
    return program


def test_a_worker_goes_on_after_a_handler_closed_its_streams(rude, temporal_address, read_until):
    process = rude.start("worker", "--address", temporal_address)
    read_until(process, "Ready")

    for title in ("first", "second"):
        rude("fire", "new-issue", "--payload", "-", stdin=f'{{"title": "{title}"}}')
        assert "succeeded, 1 attempt" in read_until(process, "new-issue@v1")[-1]

    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 0
    said = (rude.folder / "stderr").read_text()
    assert "logged by first" in said
    assert "logged by second" in said
    assert "stopping: handlers may end what they do" in said


def test_the_outcome_of_a_handler_that_closed_its_streams_is_printed(rude, temporal_address):
    ran = rude(
        *("fire", "new-issue", "--payload", "-", "--wait", "--json", "--address", temporal_address),
        stdin='{"title": "only"}',
    )

    assert ran.code == 0, ran.err
    assert ran.json["result"] == "silenced"
    assert "logged by only" in ran.err


def test_a_handler_that_stops_the_loop_is_named_as_the_one_at_fault(rude, temporal_address):
    ran = rude("fire", "slow", "--wait", "--address", temporal_address)

    assert ran.code == 1
    assert ran.out == ""
    assert "error: a handler stopped the event loop" in ran.err
    assert "fault of harn-temporal" not in ran.err

"""A store that cannot be reached is no attempt, and no handler runs twice for it."""

from __future__ import annotations

import pytest

from harn_temporal.errors import StoreUnavailableError
from harn_temporal.temporal.starter import start_dispatch
from harn_temporal.worker import WorkerOptions, running_worker

LIB = """
calls = []

def handle(event, context):
    calls.append(context.attempt)
    return list(calls)
"""


class Interrupted:
    """An EventLog whose transactions fail where `down` lists their number, counted from 1."""

    def __init__(self, log, down):
        self._log = log
        self._down = down
        self.transactions = 0

    def __getattr__(self, name):
        return getattr(self._log, name)

    async def transact(self, work):
        self.transactions += 1
        if self.transactions in self._down:
            raise StoreUnavailableError("the disk is away")
        return await self._log.transact(work)


@pytest.mark.parametrize(
    ("down", "timers"),
    [((2,), 1), ((3, 4), 0)],  # the first transaction registers the bindings
    ids=["at the start", "at the outcome"],
)
async def test_outage(temporal_client, make_package, harness, monkeypatch, *, down, timers):
    monkeypatch.setattr("harn_temporal.activities.store_access.FIRST_PAUSE_S", 0.05)
    package = make_package(LIB, harness.trigger("handle"))
    request = await package.request()
    log = Interrupted(package.log, down)
    async with running_worker(temporal_client, log, package.manifest, WorkerOptions(pump=False)):
        started = await start_dispatch(temporal_client, log, request)
        outcome = await started.handle.result()
    assert (outcome.status, outcome.attempt_count) == ("succeeded", 1)
    assert outcome.result == [1]
    attempts = await package.log.read("trigger.attempts")
    assert [r.payload["outcome"] for r in attempts] == ["success"]
    events = (await started.handle.fetch_history()).events
    assert sum(e.HasField("timer_started_event_attributes") for e in events) == timers

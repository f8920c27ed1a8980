"""Who writes the outcome of an attempt first, wins; everyone else adopts it."""

from __future__ import annotations

import pytest

from harn_temporal.activities.attempt_log import AttemptLog
from harn_temporal.bindings import HandlerTarget
from harn_temporal.contracts import RemoteTask
from harn_temporal.dispatch_records import verdict
from harn_temporal.eventlog import StoreSettings, open_event_log
from harn_temporal.gates.circuit import OPEN_MS, tell_circuit

AGENT = "a2a://reviewer.test/triage"


@pytest.fixture
def records(log, request_):
    def make(attempt=1, run_id="run"):
        return AttemptLog(log, request_, dispatch_id="d", run_id=run_id, attempt=attempt)

    return make


class Hops:
    """The first attempts of dispatches to an agent, in a store whose clock stands still."""

    def __init__(self, log, request):
        self.log = log
        target = HandlerTarget(kind="a2a", uri=AGENT)
        self.binding = request.binding.model_copy(update={"handler": target})
        self._request = request.model_copy(update={"binding": self.binding})

    def hop(self, dispatch_id):
        return AttemptLog(self.log, self._request, dispatch_id=dispatch_id, run_id="r", attempt=1)

    async def lose(self, dispatch_id, status="failed", task=None):
        outcome = verdict(self.binding, 1, status, error="silent")
        await self.hop(dispatch_id).end_lost(outcome.model_copy(update={"remote_task": task}))

    async def fail(self, dispatch_id):
        await self.hop(dispatch_id).end(verdict(self.binding, 1, "failed", error="away"))

    async def circuit(self):
        return await self.log.query(lambda reader: reader.circuits.get(AGENT))


@pytest.fixture
async def hops(request_):
    now = [1_700_000_000_000]
    opened = await open_event_log(StoreSettings("memory"), lambda: now[0])
    made = Hops(opened, request_)
    made.now = now
    yield made
    await opened.close()


async def test_a_start_is_appended_once_in_a_run(records, log):
    assert await records().start() is None
    assert await records().start() is None
    assert [r.kind for r in await log.read("trigger.outbox")] == ["dispatch_started"]
    assert await records(run_id="reset").start() is None
    assert len(await log.read("trigger.outbox")) == 2


async def test_a_late_success_does_not_undo_a_lost_attempt(records, log, binding):
    await records().start()
    lost = await records().end_lost(verdict(binding, 1, "failed", error="silent"))
    late = await records().end(verdict(binding, 1, "success", result=5))
    assert late == lost
    assert (late.status, late.retry_in_ms, late.error) == ("failed", 10, "silent")
    assert await records().start() == lost
    assert len(await log.read("trigger.attempts")) == 2  # the attempt, and its retry


async def test_a_lost_attempt_adopts_what_its_worker_wrote_at_last(records, log, binding):
    await records().start()
    await records().end(verdict(binding, 1, "success", result={"a": 1}))
    adopted = await records().end_lost(verdict(binding, 1, "failed", error="silent"))
    assert (adopted.status, adopted.final, adopted.result) == ("success", "succeeded", {"a": 1})
    assert [r.kind for r in await log.read("trigger.attempts")] == ["attempt_recorded"]


async def test_an_attempt_cancelled_before_it_began_was_none(records, log, binding):
    outcome = await records(attempt=2).end_lost(verdict(binding, 2, "cancelled", error="cancelled"))
    assert (outcome.status, outcome.final) == ("cancelled", "cancelled")
    assert await log.read("trigger.attempts") == []
    assert [r.kind for r in await log.read("trigger.outbox")] == ["dispatch_failed"]


async def test_a_large_result_becomes_an_address_whoever_reads_it(records, binding):
    await records().start()
    first = await records().end(verdict(binding, 1, "success", result="x" * 300_000))
    again = await records().start()
    assert first == again
    assert again.result is None
    assert (again.result_address.topic, again.result_address.event_id) == ("trigger.outbox", 2)


async def test_hops_that_are_lost_with_their_worker_do_not_open_the_circuit(hops):
    for number in range(5):
        assert await hops.hop(f"d{number}").start() is None
    for number in range(5):
        await hops.lose(f"d{number}", "failed" if number % 2 else "timeout")
    assert await hops.hop("next").start() is None
    assert (await hops.circuit()).failures == 0


async def test_a_hop_that_is_lost_does_not_begin_the_count_of_failures_anew(hops):
    for number in range(4):
        await hops.fail(f"d{number}")
    await hops.lose("lost")
    assert (await hops.circuit()).failures == 4
    await hops.fail("d4")
    refused = await hops.hop("next").start()
    assert (refused.final, refused.attempt) == ("dlq", 0)


async def test_a_task_that_did_not_end_in_time_counts_as_a_failure(hops):
    task = RemoteTask(
        task_id="1",
        state="working",
        target_agent="triage",
        rpc_url="https://reviewer.test/rpc",
        card_url="https://reviewer.test/.well-known/agent-card.json",
        agent_id="",
        protocol_version="1.0",
    )
    await hops.lose("d", "timeout", task)
    assert (await hops.circuit()).failures == 1


async def test_a_probe_that_is_lost_makes_room_for_another(hops):
    await hops.log.transact(
        lambda tx: [tell_circuit(tx, AGENT, f"d{n}", 1, failed=True) for n in range(5)]
    )
    hops.now[0] += OPEN_MS
    assert await hops.hop("probe").start() is None
    assert (await hops.circuit()).probe == "probe"
    await hops.lose("probe")
    found = await hops.circuit()
    assert (found.failures, found.probe) == (5, "")
    assert await hops.hop("another").start() is None
    assert (await hops.circuit()).probe == "another"

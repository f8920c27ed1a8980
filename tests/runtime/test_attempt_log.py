"""Who writes the outcome of an attempt first, wins; everyone else adopts it."""

from __future__ import annotations

import pytest

from harn_temporal.activities.attempt_log import AttemptLog
from harn_temporal.dispatch_records import verdict


@pytest.fixture
def records(log, request_):
    def make(attempt=1, run_id="run"):
        return AttemptLog(log, request_, dispatch_id="d", run_id=run_id, attempt=attempt)

    return make


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

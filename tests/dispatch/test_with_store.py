"""A dispatch's batches, as a store keeps them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from harn_temporal.contracts import AttemptOutcome
from harn_temporal.dispatch_records import (
    cancelled,
    end_key,
    ended,
    outcome_of,
    predicate_evaluated,
    skipped,
    start_key,
    started,
    trigger_key,
    verdict,
)
from harn_temporal.eventlog import StoreSettings, open_event_log
from harn_temporal.eventlog.log import EventLog

WORKFLOW = "dispatch/triage/new-issue/trigger_evt_1"


@pytest.fixture(params=["memory", "sqlite", "file"])
async def log(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[EventLog]:
    path = {"sqlite": tmp_path / "events.sqlite", "file": tmp_path / "events"}.get(request.param)
    opened = await open_event_log(StoreSettings(request.param, path))
    yield opened
    await opened.close()


async def end(log, request, outcome: AttemptOutcome) -> AttemptOutcome:
    batch = ended(request, outcome, started_at_ms=1, now_ms=2, workflow_id=WORKFLOW)
    return outcome_of((await log.append(batch, key=end_key(WORKFLOW, outcome.attempt))).records)


async def kinds(log) -> dict[str, list[str]]:
    found = defaultdict(list)
    for head in await log.topics():
        for record in await log.read(head.topic):
            found[record.topic].append(record.kind)
    return dict(found)


async def outcome(log) -> tuple[str, str, int] | None:
    found = await log.query(lambda reader: reader.inbox.outcome(WORKFLOW))
    return found and (found.status, found.topic, found.event_id)


async def test_each_topic_has_the_records_of_a_dispatch_in_order(log, make_request) -> None:
    request = make_request(tenant_id="acme")
    for attempt in (1, 2, 3):
        batch = started(request, attempt, workflow_id=WORKFLOW, now_ms=1)
        for _ in range(2):  # an activity that is tried again
            await log.append(batch, key=start_key(WORKFLOW, "run", attempt))
        assert await outcome(log) is None
        await end(log, request, verdict(request.binding, attempt, "timeout", error="late"))
    assert await kinds(log) == {
        "observability.action_graph": ["action_graph_update"] * 10,
        "tenant.acme.trigger.attempts": [
            "attempt_recorded",
            "retry_scheduled",
            "attempt_recorded",
            "retry_scheduled",
            "attempt_recorded",
        ],
        "tenant.acme.trigger.dlq": ["dlq_moved"],
        "trigger.dlq": ["dlq_entry"],
        "tenant.acme.trigger.outbox": ["dispatch_started", "dispatch_failed"] * 3,
        "tenant.acme.triggers.lifecycle": [
            "DispatchStarted",
            "DispatchFailed",
            "RetryScheduled",
            "DispatchStarted",
            "DispatchFailed",
            "RetryScheduled",
            "DispatchStarted",
            "DispatchFailed",
            "DlqMoved",
        ],
    }
    assert await outcome(log) == ("dlq", "tenant.acme.trigger.outbox", 6)


async def test_the_first_outcome_of_an_attempt_holds(log, make_request) -> None:
    request = make_request()
    first = verdict(request.binding, 1, "timeout", error="late")
    second = verdict(request.binding, 1, "success", result={"ok": True})
    assert await end(log, request, first) == first
    assert await end(log, request, second) == first
    assert await outcome(log) is None
    assert (await kinds(log))["trigger.outbox"] == ["dispatch_failed"]


@pytest.mark.parametrize(
    ("status", "final"),
    [
        ("success", "succeeded"),
        ("denied", "failed"),
        ("waiting", "waiting"),
        ("cancelled", "cancelled"),
    ],
)
async def test_the_store_knows_how_a_dispatch_ended(log, make_request, status, final) -> None:
    request = make_request()
    written = verdict(request.binding, 1, status, result=[1.5, None], error="\x00é\ud800")
    assert await end(log, request, written) == written
    assert await outcome(log) == (final, "trigger.outbox", 1)


async def test_the_store_knows_a_skipped_and_a_cancelled_dispatch(
    log, make_request, make_binding
) -> None:
    request = make_request(make_binding(when="false"))
    batch = predicate_evaluated(request, passed=False, reason=None, latency_ms=1, now_ms=1)
    batch += skipped(request, "predicate", {}, workflow_id=WORKFLOW, now_ms=1)
    await log.append(batch, key=trigger_key(WORKFLOW))
    assert await outcome(log) == ("skipped", "trigger.outbox", 1)

    other = cancelled(make_request(), 1, error="by ada", workflow_id="w2", now_ms=1)
    written = await log.append(other, key=end_key("w2", 2))
    found = await log.query(lambda reader: reader.inbox.outcome("w2"))
    assert found is not None
    assert found.status == "cancelled"
    assert outcome_of(written.records).final == "cancelled"


async def test_no_projection_stumbles_on_what_a_dispatch_writes(log, make_request) -> None:
    request = make_request(kind="a\x00\ud800", dedupe_key="\udfff")
    await log.append(started(request, 1, workflow_id=WORKFLOW, now_ms=1))
    await end(log, request, verdict(request.binding, 3, "failed", error="\ud800" * 9000))
    assert await log.query(lambda reader: reader.skipped()) == []

"""What operations ask of a store, on every backend, as it grows and made anew."""

from __future__ import annotations

import asyncio

import pytest

from harn_temporal.bindings import Binding, HandlerTarget
from harn_temporal.contracts import AttemptOutcome, DispatchRequest, EventAddress
from harn_temporal.dispatch_records import closed, end_key, ended
from harn_temporal.envelope_records import event_records
from harn_temporal.eventlog import StoreSettings, open_event_log
from harn_temporal.eventlog.log import Append
from harn_temporal.events import new_event
from harn_temporal.headers import PACKAGE, REPLAY
from harn_temporal.operations.audit import Intent
from harn_temporal.operations.replay import append_replay, replay
from harn_temporal.operations.report import Pace
from harn_temporal.operations.targets import Selection, select
from harn_temporal.registry import register


@pytest.fixture(params=["memory", "sqlite", "file"])
async def log(request, tmp_path):
    settings = StoreSettings.from_environment(tmp_path, {"HARN_EVENT_LOG_BACKEND": request.param})
    opened = await open_event_log(settings)
    yield opened
    await opened.close()


def entry(number, **fields):
    payload = {
        "id": f"dlq_{number}",
        "event_id": f"event_{number}",
        "binding_id": "nightly",
        "binding_version": 2,
        "provider": "cron",
        "kind": "tick",
        "state": "pending",
        "error": "no route",
        "error_class": "unknown",
        "event": {"tenant_id": "acme"},
        "retry_history": [{"attempt": 1, "at": "x", "status": "failed", "error": "no route"}],
    }
    return Append("trigger.dlq", "dlq_entry", payload | fields, occurred_at_ms=1_000 + number)


def a_binding(package="demo"):
    return Binding(
        package=package,
        trigger_id="nightly",
        version=2,
        kind="cron",
        provider="cron",
        handler=HandlerTarget(kind="local", uri="handlers::f"),
        fingerprint="f",
    )


async def both_ways(log, look):
    """What `look` sees, the same after a rebuild."""
    grown = await log.query(look)
    await log.rebuild()
    assert await log.query(look) == grown
    return grown


async def test_the_latest_entry_of_a_dead_letter_counts(log):
    await log.append(
        [entry(1), entry(2, binding_version=None), entry(3), Append("trigger.dlq", "dlq_moved", {})]
    )
    await log.append([entry(1, state="resolved", error="", retry_history=[]), entry(4)])
    await log.append([entry(3, state="discarded"), Append("trigger.dlq", "dlq_entry", {"id": 7})])

    def look(reader):
        tables = reader.dead_letters
        return (
            [(each.id, each.binding_key, each.state, each.attempts) for each in tables.all()],
            [each.id for each in tables.in_state("pending")],
            tables.depth(),
            tables.get("dlq_1"),
            tables.pending("event_4", "nightly").id,
            tables.pending("event_4", "hourly"),
            tables.pending("event_1", "nightly"),
            [each.reason for each in reader.skipped()],
        )

    everything, pending, depth, first, found, other, resolved, skipped = await both_ways(log, look)
    assert everything == [
        ("dlq_1", "nightly@v2", "resolved", 0),
        ("dlq_2", "nightly", "pending", 1),
        ("dlq_3", "nightly@v2", "discarded", 1),
        ("dlq_4", "nightly@v2", "pending", 1),
    ]
    assert (pending, depth) == (["dlq_2", "dlq_4"], 2)
    assert (first.moved_at_ms, first.record_id, first.tenant_id) == (1_001, 5, "acme")
    assert (found, other, resolved) == ("dlq_4", None, None)
    assert skipped == ["has no text in id"]


async def test_requests_to_cancel(log):
    def request(**payload):
        return Append("trigger.cancel.requests", "dispatch_cancel_requested", payload)

    await log.append(
        [
            request(binding_key="a@v1", event_id="e1"),
            request(binding_key="a@v1", event_id="e1"),
            request(binding_key="a@v1"),
            Append("trigger.cancel.requests", "other", {"binding_key": "a@v1", "event_id": "e2"}),
        ]
    )
    asked = [("a@v1", "e1"), ("a@v1", "e2"), ("a@v2", "e1"), ("a", "e1")]
    found = await both_ways(
        log, lambda reader: [reader.cancel_requests.requested(*each) for each in asked]
    )
    assert found == [True, False, False, False]


async def test_replays_at_once_get_numbers_of_their_own(log):
    event = new_event(provider="cron", kind="tick", payload={})
    ids = await asyncio.gather(*(append_replay(log, a_binding(), event) for _ in range(5)))
    assert sorted(ids) == [f"dispatch/demo/nightly/{event.id}/replay/{n}" for n in range(1, 6)]
    other = await append_replay(log, a_binding("other"), event)
    assert other == f"dispatch/other/nightly/{event.id}/replay/1"
    await log.rebuild()
    assert (await append_replay(log, a_binding(), event)).endswith("/replay/6")


async def test_a_replay_joins_the_trace_of_the_envelope(log):
    [binding] = await register(log, "demo", [a_binding()])
    event = new_event(provider="cron", kind="tick", payload={})
    traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    await log.append(
        event_records(
            binding, event, event.to_json(), package="demo", now_ms=1, traceparent=traceparent
        )
    )
    targets = await select(log, Selection(event_id=event.id))
    report = await replay(log, targets, Intent("replay"), "recorded")
    assert [item.done for item in report.items] == ["replayed"]
    envelopes = await log.read("trigger.inbox.envelopes")
    assert [record.headers["traceparent"] for record in envelopes] == [traceparent] * 2


async def test_an_envelope_with_a_replay_that_is_no_number_is_skipped(log):
    headers = {PACKAGE: "demo", REPLAY: "first", "trigger_id": "nightly", "event_id": "e"}
    await log.append([Append("trigger.inbox.envelopes", "event_ingested", {}, headers)])
    [skipped] = await both_ways(log, lambda reader: reader.skipped())
    assert skipped.reason == "has no number in the header harn_temporal.replay"


def end(outcome, dead_letter, event):
    request = DispatchRequest(
        store_id="s",
        binding=a_binding(),
        event_id=event.id,
        trace_id=event.trace_id,
        address=EventAddress(topic="t", event_id=1),
        event=event,
        replay_of_event_id=event.id,
        replay=1,
    )
    return ended(
        request, outcome, started_at_ms=1, now_ms=2, workflow_id="w", dead_letter=dead_letter
    )


@pytest.mark.parametrize(
    ("outcome", "state", "statuses"),
    [
        (AttemptOutcome(attempt=1, status="success", final="succeeded"), "resolved", ["success"]),
        (AttemptOutcome(attempt=1, status="failed", error="e", final="dlq"), "pending", ["failed"]),
        (
            AttemptOutcome(attempt=1, status="cancelled", error="e", final="cancelled"),
            "pending",
            [],
        ),
        (AttemptOutcome(attempt=1, status="denied", error="e", final="failed"), "pending", []),
        (AttemptOutcome(attempt=1, status="failed", error="e", retry_in_ms=5), "pending", []),
    ],
)
async def test_what_a_replay_s_end_makes_of_its_dead_letter(log, outcome, state, statuses):
    event = new_event(provider="cron", kind="tick", payload={})
    first = entry(1, event_id=event.id, event=event.to_json())
    await log.append([first])
    await log.append(end(outcome, first.payload, event), key=end_key("w", 1))
    [letter] = await both_ways(log, lambda reader: reader.dead_letters.all())
    assert (letter.id, letter.state, letter.moved_at_ms) == ("dlq_1", state, 1_001)
    [record] = await log.read("trigger.dlq", letter.record_id - 1, 1)
    history = record.payload["retry_history"]
    assert [each["status"] for each in history] == ["failed", *statuses]


def test_a_closed_dead_letter_is_its_entry_once_more():
    first = entry(1, ours="kept").payload
    record = closed(first, "discarded", now_ms=1_767_225_600_000)
    assert (record.topic, record.kind, record.headers) == ("trigger.dlq", "dlq_entry", {})
    last = {
        "attempt": 2,
        "at": "2026-01-01T00:00:00.000Z",
        "status": "discarded",
        "error": None,
    }
    assert record.payload == first | {
        "state": "discarded",
        "retry_history": [*first["retry_history"], last],
    }


async def test_a_pace_spreads_what_it_lets_pass():
    loop = asyncio.get_running_loop()
    pace = Pace(100)
    began = loop.time()
    for _ in range(4):
        await pace.wait()
    assert loop.time() - began >= 0.03

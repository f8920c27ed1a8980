"""How far dispatches have come, as the log tells it in whatever order its records are folded."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harn_temporal.eventlog.log import Append
from harn_temporal.headers import OUTCOME, PACKAGE, WORKFLOW_ID
from harn_temporal.naming import dispatch_workflow_id
from harn_temporal.recovery.stranded import stranded_envelopes

EVENTS = ("e1", "e2", "e\x00é")
WORKFLOWS = {event: dispatch_workflow_id("demo", "on-push", event) for event in EVENTS}
ENVELOPES = ("trigger.inbox.envelopes", "tenant.acme.trigger.inbox.envelopes", "trigger.inbox")
OUTBOXES = ("trigger.outbox", "tenant.acme.trigger.outbox")
ENDS = ("dispatch_succeeded", "dispatch_failed", "dispatch_waiting", "dispatch_skipped")

events = st.sampled_from(EVENTS)


@st.composite
def envelopes(draw):
    headers = {"trigger_id": "on-push", "event_id": draw(events)}
    if draw(st.integers(0, 4)):
        headers[PACKAGE] = draw(st.sampled_from(["demo", "demo", "other"]))
    return Append(draw(st.sampled_from(ENVELOPES)), "event_ingested", {"event": {}}, headers)


@st.composite
def pumped(draw):
    headers = {WORKFLOW_ID: WORKFLOWS[draw(events)], PACKAGE: "demo"}
    kinds = ["pump_admitted", "pump_dispatch_completed", "dispatch_parked", "dispatch_lost"]
    kind = draw(st.sampled_from(kinds))
    payload = {"topic": draw(st.sampled_from(ENVELOPES)), "event_log_id": draw(st.integers(1, 3))}
    return Append("orchestrator.lifecycle", kind, payload, headers)


@st.composite
def outbox(draw):
    headers = {
        WORKFLOW_ID: WORKFLOWS[draw(events)],
        "attempt": draw(st.sampled_from(["1", "2", "3"])),
    }
    kind = draw(st.sampled_from(["dispatch_started", *ENDS]))
    if kind != "dispatch_started" and draw(st.booleans()):
        headers[OUTCOME] = draw(st.sampled_from(["succeeded", "cancelled"]))
    return Append(draw(st.sampled_from(OUTBOXES)), kind, {}, headers)


@st.composite
def junk(draw):
    headers = draw(
        st.sampled_from(
            [{}, {PACKAGE: "demo"}, {WORKFLOW_ID: WORKFLOWS["e1"]}, {WORKFLOW_ID: "w", OUTCOME: ""}]
        )
    )
    topic = draw(st.sampled_from([*ENVELOPES, *OUTBOXES, "orchestrator.lifecycle"]))
    kind = draw(st.sampled_from(["event_ingested", "pump_admitted", "dispatch_started", "other"]))
    return Append(topic, kind, draw(st.sampled_from([None, [], {"topic": 5}])), headers)


STEPS = st.lists(
    st.tuples(
        envelopes() | pumped() | outbox() | junk(), st.sampled_from(["ours", "theirs", "ask"])
    ),
    max_size=25,
)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(steps=STEPS)
def test_the_projection_is_the_fold_of_the_log(lab_type, steps):
    asyncio.run(check(lab_type, steps))


async def check(lab_type, steps):
    with tempfile.TemporaryDirectory() as directory:
        lab = lab_type(Path(directory))
        log = await lab.open()
        for item, how in steps:
            if how == "theirs":
                await lab.foreign(item.topic, item.kind, item.payload, item.headers)
            else:
                await log.append([item])
            if how == "ask":
                await log.query(state)
        grown = await log.query(state)
        await log.rebuild()
        rebuilt = await log.query(state)
        records = [r for head in await log.topics() for r in await log.read(head.topic)]
        await lab.close()
    assert grown == rebuilt == expected(records)


def state(reader):
    tables = reader.dispatches
    outstanding = tables.outstanding("demo")
    assert outstanding == len(tables.outstanding_places("demo"))
    assert tables.count_waiting("demo").count == len(tables.waiting("demo"))
    return (
        outstanding,
        {each.workflow_id for each in tables.waiting("demo")},
        {each.workflow_id for each in tables.lost("demo")},
        [each.workflow_id for each in tables.under_way("demo")],
        {each.workflow_id for each in tables.unreported("demo", 100)},
        {
            name: (found.started_attempt, found.ended_attempt, found.envelope_id)
            for name in WORKFLOWS.values()
            if (found := tables.get(name)) is not None
        },
    )


def expected(records):
    """Written without the code under test: for each dispatch, the records that are about it."""
    outstanding, waiting, lost, under_way, unreported, numbers = 0, set(), set(), [], set(), {}
    for event, workflow_id in sorted(WORKFLOWS.items(), key=lambda item: item[1].encode()):
        told = [r for r in records if r.headers.get(WORKFLOW_ID) == workflow_id]
        pump = [r for r in told if r.topic == "orchestrator.lifecycle"]
        wrote = [r for r in told if r.topic in OUTBOXES]
        places = [
            (r.payload["event_log_id"], r.payload["topic"])
            for r in pump
            if r.kind == "pump_admitted" and isinstance((r.payload or {}), dict)
            and "event_log_id" in (r.payload or {})
        ]  # fmt: skip
        admitted = bool(places)
        enveloped = [
            (r.event_id, r.topic)
            for r in records
            if r.topic in ENVELOPES
            and r.kind == "event_ingested"
            and (r.headers.get(PACKAGE), r.headers.get("event_id")) == ("demo", event)
        ]
        attempts = [r for r in wrote if "attempt" in r.headers]
        starts = [int(r.headers["attempt"]) for r in attempts if r.kind == "dispatch_started"]
        ends = [int(r.headers["attempt"]) for r in attempts if r.kind in ENDS[:3]]
        over = any(r.headers.get(OUTCOME) for r in attempts)
        parked = any(r.kind == "dispatch_parked" for r in pump)
        completed = any(r.kind == "pump_dispatch_completed" for r in pump)
        newest = max([*enveloped, *places], default=(0, ""))
        marks = [r.payload["event_log_id"] for r in pump if r.kind == "dispatch_lost"]
        gone = max(marks, default=0) >= max(1, newest[0])
        left = max(marks, default=0) >= max([1, *(place for place, _ in places)])
        outstanding += admitted and not ends and not over and not parked and not left
        if gone and not over and (admitted or enveloped):
            lost.add(workflow_id)
        if enveloped and not (admitted or starts or ends or over):
            waiting.add(workflow_id)
        if (admitted or starts) and not over:
            under_way.append(workflow_id)
        if admitted and over and not completed:
            unreported.add(workflow_id)
        if enveloped or admitted or starts or ends or over or parked or completed or marks:
            numbers[workflow_id] = (max(starts, default=0), max(ends, default=0), newest[0])
    return outstanding, waiting, lost, under_way, unreported, numbers


async def test_following_a_task_is_told_from_running_and_from_having_waited(log):
    def lifecycle(**found):
        payload = {"workflow_id": "w", "reason": "any", **found}
        return Append("orchestrator.lifecycle", "dispatch_parked", payload, {WORKFLOW_ID: "w"})

    def begun(kind, attempt):
        return Append("trigger.outbox", kind, {}, {WORKFLOW_ID: "w", "attempt": attempt})

    steps = [
        (lifecycle(), (False, False)),
        (begun("dispatch_started", "1"), (False, False)),
        (lifecycle(attempt=1), (True, False)),
        (begun("dispatch_failed", "1"), (False, True)),
        (begun("dispatch_started", "2"), (False, False)),
        (lifecycle(attempt=2), (True, False)),
    ]
    for record, expected in steps:
        await log.append([record])
        found = await log.query(lambda reader: reader.dispatches.get("w"))
        assert (found.follows_a_task, found.waits_between_attempts) == expected


async def test_envelopes_of_one_millisecond_are_told_in_the_order_of_the_log(log):
    def envelope(number, topic):
        headers = {PACKAGE: "demo", "trigger_id": "on-push", "event_id": f"e{number * 7 % 20}"}
        return Append(topic, "event_ingested", {"event": {}}, headers, occurred_at_ms=1_000)

    places = [
        (topic, number) for topic in sorted(ENVELOPES[:2]) for number in range(1, 11)
    ]  # the workflow ids are in another order
    await log.append([envelope(number, topic) for number, (topic, _) in enumerate(places)])

    def told(reader):
        waiting, lost = reader.dispatches.waiting("demo"), reader.dispatches.lost("demo")
        stranded = [each.address for each in stranded_envelopes(reader, "demo")]
        return *([(d.envelope_topic, d.envelope_id) for d in found] for found in (waiting, lost)), [
            (address.topic, address.event_id) for address in stranded
        ]

    assert await log.query(told) == (places, [], places)
    for topic, number in places[1::2]:
        workflow_id = dispatch_workflow_id(
            "demo", "on-push", f"e{places.index((topic, number)) * 7 % 20}"
        )
        payload = {"topic": topic, "event_log_id": number, "workflow_id": workflow_id}
        headers = {PACKAGE: "demo", WORKFLOW_ID: workflow_id}
        kinds = ("pump_admitted", "dispatch_lost")
        await log.append(
            [Append("orchestrator.lifecycle", kind, payload, headers) for kind in kinds]
        )
    assert await log.query(told) == (places[::2], places[1::2], places)

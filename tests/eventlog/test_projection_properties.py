"""However records come (ours or others', in whatever order of topics), the projections are the
fold of the log: as they grow, and made anew."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harn_temporal.eventlog.log import Append
from harn_temporal.headers import OUTCOME, PACKAGE, TENANT_ID, WORKFLOW_ID

NAMES = st.sampled_from(["a", "b", "é\x00"])
JUNK = st.sampled_from([None, [], "text", {}, {"id": 5}, {"binding_id": "a", "expires_at_ms": 1}])


@st.composite
def claims(draw):
    payload = {
        "binding_id": draw(NAMES),
        "dedupe_key": draw(NAMES),
        "expires_at_ms": draw(st.integers(1, 9)),
    }
    topic = draw(st.sampled_from(["trigger.inbox.claims", "trigger.inbox"]))
    headers = {PACKAGE: draw(NAMES)} if draw(st.booleans()) else {}
    if draw(st.booleans()):
        headers[TENANT_ID] = draw(NAMES)
    return Append(topic, "dedupe_claim", payload, headers)


@st.composite
def ends(draw):
    topic = draw(st.sampled_from(["trigger.outbox", "tenant.a.trigger.outbox"]))
    headers = {WORKFLOW_ID: draw(NAMES)}
    if draw(st.booleans()):
        headers[OUTCOME] = draw(st.sampled_from(["succeeded", "failed", ""]))
    return Append(topic, "dispatch_failed", draw(JUNK), headers)


@st.composite
def transitions(draw):
    payload = {name: draw(NAMES) for name in ("provider", "kind", "handler_kind", "binding_key")}
    payload |= {
        "id": draw(NAMES),
        "version": draw(st.integers(1, 3)),
        "definition_fingerprint": draw(NAMES),
        "to_state": draw(st.sampled_from(["registering", "active", "terminated"])),
    }
    if draw(st.booleans()):
        payload |= {"package": draw(NAMES), "definition": {"of": draw(NAMES)}}
    return Append("triggers.lifecycle", "state_transition", payload)


@st.composite
def junk(draw):
    topics = ["trigger.inbox.claims", "trigger.outbox", "triggers.lifecycle", "elsewhere"]
    kinds = ["dedupe_claim", "state_transition", "other"]
    return Append(draw(st.sampled_from(topics)), draw(st.sampled_from(kinds)), draw(JUNK))


STEPS = st.lists(
    st.tuples(
        claims() | ends() | transitions() | junk(), st.sampled_from(["ours", "theirs", "ask"])
    ),
    max_size=25,
)


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(steps=STEPS)
def test_projections_are_the_fold_of_the_log(lab_type, steps):
    asyncio.run(check(lab_type, steps))


async def check(lab_type, steps):
    with tempfile.TemporaryDirectory() as directory:
        lab = lab_type(Path(directory))
        log = await lab.open()
        lab.clock.now_ms = 0
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
    names = ["a", "b", "é\x00"]
    claimed = {
        (package, tenant, binding, key): expiry
        for package in ["", *names]
        for tenant in ["", *names]
        for binding in names
        for key in names
        if (expiry := reader.inbox.claim_expiry(package, binding, key, tenant)) is not None
    }
    outcomes = {
        name: (found.status, found.topic, found.event_id)
        for name in names
        if (found := reader.inbox.outcome(name)) is not None
    }
    bindings = {
        (b.package, b.trigger_id, b.version): (b.state, b.fingerprint)
        for b in reader.bindings.states()
    }
    highest = {name: reader.bindings.highest(name) for name in names}
    return claimed, outcomes, bindings, highest


def expected(records):
    """Written without the code under test, and not in the way it does it."""
    claimed, outcomes, bindings = {}, {}, {}
    for record in sorted(records, key=lambda record: (record.topic, record.event_id)):
        fields = record.payload if isinstance(record.payload, dict) else {}
        if record.kind == "dedupe_claim" and "inbox" in record.topic and "dedupe_key" in fields:
            owner = record.headers.get(PACKAGE, ""), record.headers.get(TENANT_ID, "")
            key = (*owner, fields["binding_id"], fields["dedupe_key"])
            claimed[key] = max(claimed.get(key, 0), fields["expires_at_ms"])
        elif record.topic.endswith("outbox") and record.headers.get(OUTCOME):
            found = (record.headers[OUTCOME], record.topic, record.event_id)
            outcomes.setdefault(record.headers[WORKFLOW_ID], found)
        elif record.topic == "triggers.lifecycle" and "to_state" in fields:
            key = (fields.get("package", ""), fields["id"], fields["version"])
            bindings[key] = (fields["to_state"], fields["definition_fingerprint"])
    highest = {
        name: max([version for _, trigger, version in bindings if trigger == name], default=0)
        for name in ("a", "b", "é\x00")
    }
    return claimed, outcomes, bindings, highest


def test_the_oracle_is_not_blind(lab_type):
    item = Append(
        "trigger.inbox.claims",
        "dedupe_claim",
        {"binding_id": "a", "dedupe_key": "b", "expires_at_ms": 5},
    )

    async def fill():
        with tempfile.TemporaryDirectory() as directory:
            lab = lab_type(Path(directory))
            log = await lab.open()
            lab.clock.now_ms = 0
            await log.append([item])
            found = await log.query(state)
            await lab.close()
            return found

    claimed, *_ = asyncio.run(fill())
    assert claimed == {("", "", "a", "b"): 5}

"""Envelopes that the pump passed without a dispatch: found, told of, and brought back."""

from __future__ import annotations

import pytest

from harn_temporal.eventlog.records import Append
from harn_temporal.headers import PACKAGE, READMITTED_FROM
from harn_temporal.manifest import load_manifest
from harn_temporal.recovery.recover import recover
from harn_temporal.recovery.stranded import StrandedCount, note_stranded, stranded_envelopes

TOPIC = "trigger.inbox.envelopes"
TENANTS = f"tenant.acme.{TOPIC}"


async def strand(lab, count, **changes):
    """Envelopes whose trigger nobody knew when the pump came to them."""
    sent = [lab.harness.event({"n": n}, **changes) for n in range(count)]
    topic = TENANTS if "tenant_id" in changes else TOPIC
    for event in sent:
        headers = {
            PACKAGE: "demo",
            "event_id": event.id,
            "trace_id": event.trace_id,
            "trigger_id": "on-tag",
            "binding_key": "on-tag@v3",
            "provider": event.provider,
            "kind": event.kind,
        }
        payload = {"trigger_id": "on-tag", "binding_version": 3, "event": event.to_json()}
        if "tenant_id" in changes:
            headers["tenant_id"] = changes["tenant_id"]
        await lab.log.append([Append(topic, "event_ingested", payload, headers)])
    async with lab.running(await lab.make()):

        async def passed():
            return await lab.cursor(topic) == await lab.log.query(lambda r: r.head(topic))

        await lab.harness.until(passed)
    assert lab.started == []
    return [event.id for event in sent]


@pytest.fixture
def known(lab):
    """Adds the trigger to the manifest."""

    def add():
        path = lab.package.manifest.path
        text = path.read_text()
        again = text[text.index("[[triggers]]") :].replace("on-push", "on-tag")
        path.write_text(f"{text}\n{again}")
        lab.package.manifest = load_manifest(path)

    return add


async def stranded(lab, **options):
    return await lab.log.query(lambda reader: stranded_envelopes(reader, "demo", **options))


async def audits(lab):
    return [record.payload for record in await lab.log.read("trigger.operations.audit")]


async def test_what_is_stranded_and_what_only_waits(lab):
    [passed] = await strand(lab, 1)
    [waits] = await lab.send(1, tenant_id="acme")
    first, second = await stranded(lab)
    assert (first.event_id, first.passed) == (passed, True)
    assert (second.event_id, second.passed) == (waits, False)
    assert (second.trigger_id, second.binding_version, second.tenant_id) == ("on-push", 1, "acme")
    told = first.to_json(first.appended_at_ms + 5)
    assert told.pop("received_at").endswith("Z")
    assert told == {
        "inbox_offset": 1,
        "topic": TOPIC,
        "event_id": passed,
        "trigger_id": "on-tag",
        "binding_key": "on-tag@v3",
        "binding_version": 3,
        "provider": "github",
        "kind": "push",
        "tenant_id": None,
        "age": 5,
        "passed_by_pump": True,
        "lost": False,
        "attempts": 0,
    }
    assert await stranded(lab, older_than_ms=3_600_000) == []


async def test_a_dry_run_changes_nothing_and_is_audited(lab, known):
    sent = await strand(lab, 2)
    known()
    recovery = await recover(
        lab.log, "demo", older_than_ms=0, dry_run=True, requested_by="somebody"
    )
    assert [envelope.event_id for envelope in recovery.envelopes] == sent
    assert recovery.readmitted == 0
    assert await lab.log.query(lambda reader: reader.head(TOPIC)) == 2
    [audit] = await audits(lab)
    assert audit["id"] == recovery.audit_id
    assert (audit["operation"], audit["dry_run"], audit["requested_by"]) == (
        "recover",
        True,
        "somebody",
    )
    assert (audit["matched_count"], audit["executed_count"], audit["skipped_count"]) == (2, 0, 2)
    assert audit["targets"] == [
        {"event_id": event_id, "binding_key": "on-tag@v3", "latest_status": "stranded"}
        for event_id in sent
    ]


async def test_recovered_once_and_dispatched_once(lab, known):
    sent = await strand(lab, 2)
    sent += await strand(lab, 1, tenant_id="acme")
    known()
    for readmitted in (3, 0):
        recovery = await recover(lab.log, "demo", older_than_ms=0, dry_run=False)
        assert recovery.readmitted == readmitted
    copy = (await lab.log.read(TOPIC))[-1]
    assert copy.headers[READMITTED_FROM] == f"{TOPIC}/2"
    assert (await audits(lab))[0]["executed_count"] == 3
    async with lab.running(await lab.make()):
        await lab.until_started(3)
    assert sorted(request.event_id for request in lab.started) == sorted(sent)
    assert {request.binding.binding_key for request in lab.started} == {"on-tag@v1"}
    assert {request.tenant_id for request in lab.started} == {None, "acme"}
    assert await stranded(lab) == []
    again = await recover(lab.log, "demo", older_than_ms=0, dry_run=False)
    assert (again.envelopes, again.readmitted) == ((), 0)


async def test_what_only_waits_is_left_where_it_is(lab):
    [sent] = await lab.send(1)
    recovery = await recover(lab.log, "demo", older_than_ms=0, dry_run=False)
    assert [envelope.event_id for envelope in recovery.envelopes] == [sent]
    assert recovery.readmitted == 0
    assert await lab.log.query(lambda reader: reader.head(TOPIC)) == 1
    assert (await audits(lab))[0]["targets"][0]["latest_status"] == "waiting"


async def test_another_packages_envelopes_are_theirs(lab):
    await strand(lab, 1)
    other = await recover(lab.log, "other", older_than_ms=0, dry_run=False)
    assert other.envelopes == ()


async def test_a_start_says_what_it_finds(lab):
    assert await note_stranded(lab.log, "demo", max_outstanding=64, older_than_ms=0) == (
        StrandedCount()
    )
    await strand(lab, 2)
    await lab.send(1)
    found = await note_stranded(lab.log, "demo", max_outstanding=64, older_than_ms=0)
    assert (found.passed, found.waiting) == (2, 1)
    kind, payload = (await lab.lifecycle())[-1]
    assert (kind, payload) == ("startup_stranded_envelopes", {"count": 3})
    assert [kind for kind, _ in await lab.lifecycle()].count("startup_stranded_envelopes") == 1

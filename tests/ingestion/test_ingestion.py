from __future__ import annotations

import asyncio
import logging

import pytest

from harn_temporal.contracts import DispatchRequest, EventAddress
from harn_temporal.errors import EventError, NotFoundError, StoreError
from harn_temporal.event_address import load_event, with_event
from harn_temporal.eventlog.records import Append
from harn_temporal.eventlog.topics import INBOX_CLAIMS, INBOX_ENVELOPES, TRIGGERS_EVENTS
from harn_temporal.ingestion import EVENT_LIMIT, PAYLOAD_LIMIT, Ingested, ingest
from harn_temporal.retry import RetryPolicy

DAY_MS = 86_400_000


async def counts(log) -> dict[str, int]:
    return {head.topic: head.last_id for head in await log.topics()}


async def test_an_accepted_event_leaves_claim_envelope_and_the_record_for_replay(
    log, clock, make_binding, make_event
) -> None:
    traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    event = make_event(headers={"x-github-delivery": "d1"}).model_copy(
        update={"headers": {"x-github-delivery": "d1", "Traceparent": traceparent}}
    )
    clock.now_ms += 77
    (found,) = await ingest(log, [make_binding()], event, package="triage")
    assert found == Ingested(
        trigger_id="new-issue",
        binding_key="new-issue@v1",
        status="accepted",
        event_id=event.id,
        workflow_id=f"dispatch/triage/new-issue/{event.id}",
        address=EventAddress(topic=INBOX_ENVELOPES, event_id=1),
    )
    assert await counts(log) == {INBOX_CLAIMS: 1, INBOX_ENVELOPES: 1, TRIGGERS_EVENTS: 1}
    base = {
        "event_id": event.id,
        "trace_id": event.trace_id,
        "provider": "github",
        "kind": "issues.opened",
        "trigger_id": "new-issue",
        "binding_key": "new-issue@v1",
        "handler_kind": "local",
    }

    def ours(record) -> dict[str, str]:
        return {k: v for k, v in record.headers.items() if not k.startswith("harn.provenance.")}

    (envelope,) = await log.read(INBOX_ENVELOPES)
    assert (envelope.kind, envelope.occurred_at_ms) == ("event_ingested", clock.now_ms)
    assert envelope.payload == {
        "trigger_id": "new-issue",
        "binding_version": 1,
        "event": event.to_json(),
    }
    assert ours(envelope) == {
        **base,
        "harn_trigger_accepted_at_ms": str(clock.now_ms - 77),
        "harn_trigger_queue_appended_at_ms": str(clock.now_ms),
        "harn_temporal.package": "triage",
        "traceparent": traceparent,
    }
    (claim,) = await log.read(INBOX_CLAIMS)
    assert claim.kind == "dedupe_claim"
    assert claim.payload == {
        "binding_id": "new-issue",
        "dedupe_key": "d1",
        "expires_at_ms": clock.now_ms + 7 * DAY_MS,
    }
    assert ours(claim) == {"harn_temporal.package": "triage"}
    (replayable,) = await log.read(TRIGGERS_EVENTS)
    assert replayable.kind == "trigger_event"
    assert replayable.payload == {
        "binding_id": "new-issue",
        "binding_version": 1,
        "replay_of_event_id": None,
        "event": event.to_json(),
    }
    assert ours(replayable) == base


async def test_a_tenant_has_envelopes_and_dedupe_keys_of_its_own(
    log, make_binding, make_event
) -> None:
    event = make_event(tenant_id="acme")
    (found,) = await ingest(log, [make_binding()], event, package="triage")
    topic = f"tenant.acme.{INBOX_ENVELOPES}"
    assert found.address == EventAddress(topic=topic, event_id=1)
    assert await counts(log) == {INBOX_CLAIMS: 1, topic: 1, TRIGGERS_EVENTS: 1}
    (envelope,) = await log.read(topic)
    assert envelope.headers["tenant_id"] == "acme"

    async def again(tenant_id: str | None) -> str:
        event = make_event(tenant_id=tenant_id)
        return (await ingest(log, [make_binding()], event, package="triage"))[0].status

    assert [await again("acme"), await again("globex"), await again(None), await again(None)] == [
        "duplicate",
        "accepted",
        "accepted",
        "duplicate",
    ]


async def test_a_duplicate_appends_nothing_until_its_claim_is_over(
    log, clock, make_binding, make_event
) -> None:
    binding = make_binding(retry=RetryPolicy(retention_days=1))
    first = await ingest(log, [binding], make_event(), package="triage")
    before = await counts(log)
    clock.now_ms += DAY_MS - 1
    second = await ingest(log, [binding], make_event(), package="triage")
    assert [row.status for row in (*first, *second)] == ["accepted", "duplicate"]
    assert second[0].address is None
    assert await counts(log) == before
    clock.now_ms += 1
    third = await ingest(log, [binding], make_event(), package="triage")
    assert third[0].address == EventAddress(topic=INBOX_ENVELOPES, event_id=2)


async def test_packages_and_bindings_claim_for_themselves(log, make_binding, make_event) -> None:
    bindings = [make_binding(), make_binding("second"), make_binding("third", provider="slack")]
    found = await ingest(log, bindings, make_event(), package="triage")
    assert [(row.trigger_id, row.status) for row in found] == [
        ("new-issue", "accepted"),
        ("second", "accepted"),
    ]
    other = await ingest(log, bindings[:1], make_event(), package="other")
    assert [row.status for row in other] == ["accepted"]


async def test_a_binding_without_version_is_known_by_its_bare_id(
    log, make_binding, make_event
) -> None:
    await ingest(log, [make_binding(version=0)], make_event(), package="triage")
    (envelope,) = await log.read(INBOX_ENVELOPES)
    assert envelope.payload["binding_version"] is None
    assert envelope.headers["binding_key"] == "new-issue"


@pytest.mark.parametrize(
    ("source", "status"),
    [
        ("event.provider_payload.raw.action", "accepted"),
        ("event.provider_payload.raw.n", "accepted"),  # the number 0 is true in JMESPath
        ("event.provider_payload.raw.empty", "filtered"),
        ("event.provider_payload.raw.missing", "filtered"),
        ("event.provider_payload.raw.action == 'closed'", "filtered"),
        ("event.headers.missing || ''", "filtered"),
        ("event.provider_payload.raw.id", "accepted"),
        ("event.provider_payload.raw.{}".replace("{}", "id.c || `{}`"), "filtered"),
    ],
)
async def test_a_filter_decides(log, make_binding, make_event, source, status) -> None:
    (found,) = await ingest(log, [make_binding(filter=source)], make_event(), package="triage")
    assert (found.status, found.warning) == (status, None)
    assert (await counts(log) == {}) == (status == "filtered")


async def test_a_filter_that_fails_counts_as_no_with_a_warning_and_spares_the_others(
    log, make_binding, make_event, caplog
) -> None:
    event = make_event()
    bindings = [make_binding(filter="length(event.missing)"), make_binding("second")]
    with caplog.at_level(logging.WARNING):
        found = await ingest(log, bindings, event, package="triage")
    assert [row.status for row in found] == ["filtered", "accepted"]
    assert found[0].warning is not None
    start = f"trigger 'new-issue', event {event.id}: the filter `length(event.missing)` failed: "
    assert found[0].warning.startswith(start)
    assert found[0].warning.endswith("; the event was taken as not matching")
    (record,) = caplog.records
    assert (record.msg, record.problem) == ("expression_failed", found[0].warning)
    assert found[1].warning is None


async def test_a_filter_that_fails_for_the_only_trigger_is_an_error(
    log, make_binding, make_event
) -> None:
    binding = make_binding(filter="length(event.missing)")
    with pytest.raises(EventError, match=r"the filter .* failed: .*; nothing was appended"):
        await ingest(log, [binding], make_event(), package="triage", only="new-issue")
    assert await counts(log) == {}


@pytest.mark.parametrize(
    ("source", "key"),
    [
        (None, "delivery-1"),
        ("event.provider_payload.raw.action", "opened"),
        ("event.provider_payload.raw.missing", "delivery-1"),
        ("event.headers.missing || ''", "delivery-1"),
        ("event.provider_payload.raw.n", "0"),
        ("event.provider_payload.raw.id", '{"a":"é","b":1}'),
        ("[event.kind, event.provider_payload.raw.missing]", '["issues.opened",null]'),
        ("event.kind == 'x'", "false"),
    ],
)
async def test_a_dedupe_key_is_text(log, make_binding, make_event, source, key) -> None:
    await ingest(log, [make_binding(dedupe_key=source)], make_event(), package="triage")
    (claim,) = await log.read(INBOX_CLAIMS)
    assert claim.payload["dedupe_key"] == key


async def test_a_dedupe_key_that_fails_is_the_event_s_own_with_a_warning(
    log, make_binding, make_event
) -> None:
    binding = make_binding(dedupe_key="length(event.missing)")
    (found,) = await ingest(log, [binding], make_event(), package="triage")
    (claim,) = await log.read(INBOX_CLAIMS)
    assert (found.status, claim.payload["dedupe_key"]) == ("accepted", "delivery-1")
    assert found.warning is not None
    assert found.warning.endswith("; the event's own key was taken")


async def test_only_one_trigger_takes_an_event_that_its_match_does_not_name(
    log, make_binding, make_event
) -> None:
    bindings = [make_binding(), make_binding("second", events=("push",))]
    found = await ingest(log, bindings, make_event(), package="triage", only="second")
    assert [(row.trigger_id, row.status) for row in found] == [("second", "accepted")]


async def test_an_unknown_trigger_is_named_beside_the_known_ones(
    log, make_binding, make_event
) -> None:
    bindings = [make_binding(), make_binding("second")]
    with pytest.raises(NotFoundError) as raised:
        await ingest(log, bindings, make_event(), package="triage", only="nope")
    assert str(raised.value) == ("there is no trigger 'nope'; the manifest has: new-issue, second")
    with pytest.raises(NotFoundError, match="the manifest has: none"):
        await ingest(log, [], make_event(), package="triage", only="nope")


async def test_a_payload_at_the_limit_is_accepted_and_one_byte_more_is_not(
    log, make_binding, make_event
) -> None:
    body = "x" * (PAYLOAD_LIMIT - 2)  # the quotes are the other two bytes
    event = make_event(payload=body, raw_body=body.encode())
    (found,) = await ingest(log, [make_binding()], event, package="triage")
    assert found.status == "accepted"
    before = await counts(log)
    with pytest.raises(EventError) as raised:
        await ingest(log, [make_binding()], make_event(payload=body + "x"), package="triage")
    assert str(raised.value) == (
        "the event is too large: its payload is 10,485,761 bytes of JSON (10.0 MiB), "
        "and the limit is 10,485,760 (10 MiB); send a reference to the content"
    )
    assert await counts(log) == before


async def test_an_event_is_limited_as_a_whole(log, make_binding, make_event) -> None:
    event = make_event(headers={"x-long": "x" * EVENT_LIMIT})
    with pytest.raises(EventError, match=r"the event with all its fields is .* \(40 MiB\)"):
        await ingest(log, [make_binding()], event, package="triage")


@pytest.mark.parametrize("traceparent", ["nonsense", "00-00-00-00", "é\ud800"])
async def test_a_malformed_traceparent_is_no_header_of_the_envelope(
    log, make_binding, make_event, traceparent
) -> None:
    event = make_event(headers={"traceparent": traceparent})
    await ingest(log, [make_binding()], event, package="triage")
    (envelope,) = await log.read(INBOX_ENVELOPES)
    assert "traceparent" not in envelope.headers


async def test_nul_unicode_and_lone_surrogates_are_ingested(log, make_binding, make_event) -> None:
    event = make_event(
        kind="a\x00é\ud800",
        headers={"x-\udc00": "\x00\ud83d", "x-github-delivery": "d\ud800\x00"},
        payload={"k\ud800": ["\x00", "\udfff", "😀"]},
    )
    binding = make_binding(events=())
    (found,) = await ingest(log, [binding], event, package="triage")
    (envelope,) = await log.read(INBOX_ENVELOPES)
    assert found.status == "accepted"
    assert envelope.headers["kind"] == "a\x00é\ufffd"
    raw = envelope.payload["event"]["provider_payload"]["raw"]
    assert raw == {"k\ufffd": ["\x00", "\ufffd", "😀"]}
    again = await ingest(log, [binding], event, package="triage")
    assert again[0].status == "duplicate"


@pytest.mark.parametrize(
    ("received_at", "accepted_at_ms"),
    [
        ("2026-01-02T03:04:05.123456789Z", "1767323045123"),
        ("2026-01-02T03:04:05z", "1767323045000"),
        ("2026-01-02T04:04:05.5+01:00", "1767323045500"),
        ("whenever", "1767323045123"),
    ],
)
async def test_any_time_of_receipt_is_read(
    log, make_binding, make_event, received_at, accepted_at_ms
) -> None:
    event = make_event().model_copy(update={"received_at": received_at})
    await ingest(log, [make_binding()], event, package="triage")
    (envelope,) = await log.read(INBOX_ENVELOPES)
    assert envelope.headers["harn_trigger_accepted_at_ms"] == accepted_at_ms


async def test_the_same_delivery_at_once_leaves_one_envelope(log, make_binding, make_event) -> None:
    found = await asyncio.gather(
        *(ingest(log, [make_binding()], make_event(), package="triage") for _ in range(10))
    )
    statuses = sorted(row.status for rows in found for row in rows)
    assert statuses == ["accepted", *["duplicate"] * 9]
    assert await counts(log) == {INBOX_CLAIMS: 1, INBOX_ENVELOPES: 1, TRIGGERS_EVENTS: 1}


async def test_two_processes_with_the_same_delivery_leave_one_envelope(
    two_logs, make_binding, make_event
) -> None:
    async with two_logs() as logs:
        found = await asyncio.gather(
            *(
                ingest(log, [make_binding()], make_event(), package="triage")
                for _ in range(5)
                for log in logs
            )
        )
        statuses = sorted(row.status for rows in found for row in rows)
        assert statuses == ["accepted", *["duplicate"] * 9]
        for log in logs:
            assert len(await log.read(INBOX_ENVELOPES)) == 1


def request_for(event, address, binding) -> DispatchRequest:
    return DispatchRequest(
        store_id="store",
        binding=binding,
        event_id=event.id,
        trace_id=event.trace_id,
        address=address,
    )


async def test_an_event_is_found_by_its_address(log, make_binding, make_event) -> None:
    binding = make_binding()
    events = [make_event(dedupe_key=str(number)) for number in range(3)]
    rows = [(await ingest(log, [binding], event, package="triage"))[0] for event in events]
    request = request_for(events[1], rows[1].address, binding)
    assert await load_event(log, request) == events[1]
    carrying = await with_event(log, request)
    assert carrying.event == events[1]
    assert await with_event(log, carrying) is carrying


async def test_an_address_that_leads_elsewhere_is_an_error(log, make_binding, make_event) -> None:
    binding, event = make_binding(), make_event()
    await ingest(log, [binding], event, package="triage")
    nowhere = EventAddress(topic=INBOX_ENVELOPES, event_id=2)
    with pytest.raises(StoreError, match=r"has no record 2, where the envelope of event"):
        await load_event(log, request_for(event, nowhere, binding))
    before_all = EventAddress(topic=INBOX_ENVELOPES, event_id=0)
    with pytest.raises(StoreError, match="has no record 0"):
        await load_event(log, request_for(event, before_all, binding))
    claim = EventAddress(topic=INBOX_CLAIMS, event_id=1)
    with pytest.raises(StoreError, match=rf"record 1 of topic {INBOX_CLAIMS} holds no event: "):
        await load_event(log, request_for(event, claim, binding))
    other = make_event()
    address = EventAddress(topic=INBOX_ENVELOPES, event_id=1)
    with pytest.raises(StoreError, match=rf"is event {event.id}, not {other.id}"):
        await load_event(log, request_for(other, address, binding))


async def test_an_envelope_of_harn_that_is_the_event_itself_is_read(
    log, make_binding, make_event
) -> None:
    event = make_event()
    await log.append([Append(INBOX_ENVELOPES, "event_ingested", event.to_json())])
    address = EventAddress(topic=INBOX_ENVELOPES, event_id=1)
    assert await load_event(log, request_for(event, address, make_binding())) == event

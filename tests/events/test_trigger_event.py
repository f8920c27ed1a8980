import base64
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from harn_temporal.canonical import PAYLOAD_DEPTH_LIMIT, decode, encode
from harn_temporal.contracts import DispatchRequest
from harn_temporal.errors import EventError
from harn_temporal.events import SignatureStatus, TriggerEvent, new_event

NOW_MS = 1_780_000_000_123
REQUIRED = {
    "id",
    "provider",
    "kind",
    "received_at",
    "occurred_at",
    "dedupe_key",
    "trace_id",
    "headers",
    "provider_payload",
    "signature_status",
}


def make(**given):
    return new_event(
        **{"provider": "webhook", "kind": "ping", "payload": {"n": 1}, "clock": lambda: NOW_MS}
        | given
    )


def refusal(**given):
    with pytest.raises(EventError) as caught:
        make(**given)
    return str(caught.value)


def test_a_new_event_as_records_hold_it():
    event = make(headers={"Tenant": "acme", "Authorization": "Bearer x"})
    built = event.to_json()
    assert re.fullmatch(r"trigger_evt_[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f-]+", built.pop("id"))
    assert re.fullmatch(r"trace_[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f-]+", built.pop("trace_id"))
    assert built.pop("dedupe_key") == event.id
    assert built == {
        "provider": "webhook",
        "kind": "ping",
        "received_at": "2026-05-28T20:26:40.123Z",
        "occurred_at": None,
        "tenant_id": None,
        "headers": {"tenant": "acme", "authorization": "[redacted]"},
        "provider_payload": {
            "provider": "webhook",
            "source": None,
            "content_type": None,
            "raw": {"n": 1},
        },
        "signature_status": {"state": "unsigned"},
    }


def test_what_is_given_is_kept():
    event = make(
        tenant_id="acme_1-x",
        dedupe_key="mine",
        occurred_at="2026-01-31T09:30:00.123456789Z",
        signature=SignatureStatus(state="failed", reason="no match"),
        raw_body=b"\xff\x00?",
    )
    built = event.to_json()
    assert built["tenant_id"] == "acme_1-x"
    assert built["dedupe_key"] == "mine"
    assert built["occurred_at"] == "2026-01-31T09:30:00.123456789Z"
    assert built["signature_status"] == {"state": "failed", "reason": "no match"}
    assert built["raw_body"] == "/wA/"
    assert base64.b64decode(built["raw_body"]) == b"\xff\x00?"


def test_raw_body_is_padded():
    assert make(raw_body=b"a").raw_body == "YQ=="


@pytest.mark.parametrize(
    ("provider", "headers", "key"),
    [
        ("github", {"X-GitHub-Delivery": "d"}, "d"),
        ("github", {"x-github-delivery": "d", "idempotency-key": "i"}, "d"),
        ("github", {"linear-delivery": "d"}, None),
        ("linear", {"Linear-Delivery": "d"}, "d"),
        ("webhook", {"Idempotency-Key": "i"}, "i"),
        ("webhook", {"webhook-id": "w"}, "w"),
        ("webhook", {"x-github-delivery": "d"}, None),
        ("webhook", {"idempotency-key": ""}, None),
        ("cron", {}, None),
    ],
)
def test_the_default_dedupe_key_is_the_delivery_or_the_event(provider, headers, key):
    event = make(provider=provider, headers=headers)
    assert event.dedupe_key == (key or event.id)
    assert make(provider=provider, headers=headers, dedupe_key="mine").dedupe_key == "mine"


@pytest.mark.parametrize("tenant", ["", "a.b", "a b", "a/b", "é", "a\n", "\ud800"])
def test_a_tenant_id_that_could_not_be_in_a_topic_is_refused(tenant):
    assert repr(tenant) in refusal(tenant_id=tenant)
    built = make().to_json() | {"tenant_id": tenant}
    with pytest.raises(EventError):
        TriggerEvent.from_json(built)


@pytest.mark.parametrize(
    "occurred_at",
    ["yesterday", "2026-01-31", "2026-01-31T09:30:00", "2026-13-01T00:00:00Z", "2026-01-31 09:30Z"],
)
def test_a_time_that_harn_could_not_read_is_refused(occurred_at):
    assert "give an RFC 3339 time" in refusal(occurred_at=occurred_at)


def test_a_payload_that_cannot_be_recorded_says_where():
    message = refusal(payload={"a": [float("nan")]})
    assert message == "the payload cannot be recorded: $.a[0] is nan, which JSON cannot hold"
    assert refusal(kind="") == "the event's kind is empty"
    assert refusal(provider="") == "the event's provider is empty"


def deep(levels):
    value = 0
    for _ in range(levels):
        value = {"a": value}
    return value


def test_the_deepest_payload_passes_every_reader():
    event = make(payload=deep(PAYLOAD_DEPTH_LIMIT))
    assert TriggerEvent.from_json(decode(encode(event.to_json()))) == event
    assert TriggerEvent.model_validate_json(event.model_dump_json()) == event
    assert "nested too deeply" in refusal(payload=deep(PAYLOAD_DEPTH_LIMIT + 1))


def test_unknown_fields_are_kept():
    built = make().to_json() | {"new_field": {"a": [1]}}
    built["signature_status"] = {"state": "verified", "algorithm": "ed25519"}
    built["provider_payload"]["topic"] = "t"
    event = TriggerEvent.from_json(built)
    assert event.to_json() == built
    assert json.loads(event.model_dump_json()) == built


def test_times_stay_as_they_were_written():
    built = make().to_json() | {"received_at": "2026-01-31T09:30:00.123456789Z"}
    assert TriggerEvent.from_json(built).to_json() == built


def test_a_batch_is_kept_and_left_out_when_there_is_none():
    built = make().to_json()
    assert not {"batch", "raw_body"} & set(built)
    members = [built, make().to_json()]
    assert TriggerEvent.from_json(built | {"batch": members}).to_json()["batch"] == members
    assert "batch" not in TriggerEvent.from_json(built | {"batch": None}).to_json()


@pytest.mark.parametrize("field", sorted(REQUIRED))
def test_a_required_field_that_is_missing_is_named(field):
    built = make().to_json()
    assert set(built) >= REQUIRED
    del built[field]
    with pytest.raises(EventError) as caught:
        TriggerEvent.from_json(built)
    assert str(caught.value) == f"not a trigger event: {field}: Field required"


@pytest.mark.parametrize("value", [None, [], "x", 3, {"id": float("inf")}])
def test_what_is_no_event_is_refused(value):
    with pytest.raises(EventError):
        TriggerEvent.from_json(value)


def test_all_that_is_wrong_is_said_at_once():
    built = make().to_json() | {"headers": {"a": 1}, "signature_status": {"state": "failed"}}
    del built["id"]
    with pytest.raises(EventError) as caught:
        TriggerEvent.from_json(built)
    message = str(caught.value)
    assert "id: Field required" in message
    assert "headers.a: Input should be a valid string" in message
    assert "a failed signature needs a reason" in message


def test_an_event_is_frozen():
    with pytest.raises(ValidationError):
        make().kind = "other"


def test_to_json_is_a_copy():
    event = make()
    event.to_json()["provider_payload"]["raw"]["n"] = 2
    assert event.raw == {"n": 1}


def test_an_event_travels_in_a_request_as_it_is():
    schema = DispatchRequest.model_json_schema()
    assert "event" in schema["properties"]
    event = make(payload={"big": 2**64 - 1, "f": 1e-7, "s": "\x00é"})
    copy = TriggerEvent.model_validate_json(event.model_dump_json())
    assert copy == event
    assert "raw_body" not in event.model_dump_json()


nasty = st.text(st.sampled_from("\ud800\udfff\x00é\U0001f600a")) | st.text(st.characters())


@given(nasty, st.dictionaries(nasty, nasty), nasty)
def test_any_text_is_recorded(text, headers, key):
    event = make(payload={text: text}, headers=headers, dedupe_key=key, kind=f"k{text}")
    written = encode(event.to_json())
    assert TriggerEvent.from_json(decode(written)) == event
    written.decode("utf-8")

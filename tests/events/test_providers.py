import pytest

from harn_temporal.events import new_event
from harn_temporal.providers import STREAM_PROVIDERS

NOW_MS = 1_780_000_000_123


def typed(provider, kind, payload=None, headers=None):
    event = new_event(
        provider=provider,
        kind=kind,
        payload=payload if payload is not None else {},
        headers=headers,
        clock=lambda: NOW_MS,
    )
    return event.provider_payload


@pytest.mark.parametrize(
    ("provider", "required"),
    [
        ("github", {"event"}),
        ("slack", {"event"}),
        ("linear", {"event", "actor"}),
        ("notion", {"event"}),
        *((provider, {"event"}) for provider in sorted(STREAM_PROVIDERS)),
        ("cron", {"tick_at"}),
        ("webhook", set()),
        ("a2a-push", {"kind"}),
        ("channel", {"schema_name"}),
        ("acme-crm", {"schema_name"}),
    ],
)
@pytest.mark.parametrize("payload", [{}, [], "text", None, 3, {"event": 3, "installation": []}])
def test_what_harn_requires_is_there_whatever_the_payload(provider, required, payload):
    event = new_event(provider=provider, kind="made.up", payload=payload, clock=lambda: NOW_MS)
    built = event.provider_payload
    assert required <= set(built)
    assert built["provider"] == provider
    assert built["raw"] == payload
    assert "schema_name" not in built or required == {"schema_name"}


def test_github_issues():
    payload = {"action": "opened", "issue": {"number": 7}, "installation": {"id": 42}, "x": 1}
    headers = {"X-GitHub-Delivery": "d-1"}
    assert typed("github", "issues.opened", payload, headers) == {
        "provider": "github",
        "event": "issues",
        "action": "opened",
        "delivery_id": "d-1",
        "installation_id": 42,
        "issue": {"number": 7},
        "raw": payload,
    }


@pytest.mark.parametrize(
    ("event", "objects"),
    [
        ("issues", {"issue"}),
        ("issue_comment", {"issue", "comment"}),
        ("pull_request", {"pull_request"}),
        ("pull_request_review", {"pull_request", "review"}),
        ("workflow_run", {"workflow_run"}),
        ("deployment_status", {"deployment_status", "deployment"}),
        ("check_run", {"check_run"}),
        ("check_suite", {"check_suite"}),
        ("merge_group", {"merge_group"}),
        ("star", set()),
    ],
)
def test_github_objects_are_there_and_null_where_the_payload_has_none(event, objects):
    common = {"provider", "event", "action", "delivery_id", "installation_id", "raw"}
    full = typed("github", f"{event}.created", {name: {"id": name} for name in objects})
    assert set(full) == common | objects
    assert {name: full[name] for name in objects} == {name: {"id": name} for name in objects}
    empty = typed("github", event)
    assert {name: empty[name] for name in objects} == dict.fromkeys(objects)
    assert (empty["action"], empty["delivery_id"], empty["installation_id"]) == (None, None, None)


def test_github_push_lists_its_commits():
    built = typed("github", "push", {"commits": [{"id": "a"}], "distinct_size": 1})
    assert (built["event"], built["commits"], built["distinct_size"]) == ("push", [{"id": "a"}], 1)
    assert typed("github", "push", {"commits": None})["commits"] == []


@pytest.mark.parametrize("value", ["42", 4.2, True, 2**63, None])
def test_an_installation_id_that_harn_could_not_read_is_null(value):
    assert typed("github", "push", {"installation": {"id": value}})["installation_id"] is None


def test_slack():
    payload = {
        "event_id": "Ev1",
        "team_id": "T1",
        "event": {"type": "message", "channel": "C1", "user": "U1", "text": "hi", "ts": "1.2"},
    }
    built = typed("slack", "message.channels", payload)
    assert built["raw"] == payload
    assert {key: value for key, value in built.items() if key != "raw" and value is not None} == {
        "provider": "slack",
        "event": "message.channels",
        "event_id": "Ev1",
        "team_id": "T1",
        "channel_id": "C1",
        "user_id": "U1",
        "channel": "C1",
        "user": "U1",
        "text": "hi",
        "ts": "1.2",
    }


@pytest.mark.parametrize(
    ("kind", "payload", "event", "named"),
    [
        ("issue.create", {"data": {"id": "i"}}, "issue", "issue"),
        ("x", {"type": "IssueLabel", "data": {"id": "i"}}, "issue_label", "label"),
        ("x", {"type": "Comment", "data": {"id": "i"}}, "comment", "comment"),
        ("x", {"type": "CustomerRequest", "data": {"id": "i"}}, "customer_request", None),
        ("reminder.fired", {}, "reminder", "none"),
    ],
)
def test_linear(kind, payload, event, named):
    built = typed("linear", kind, payload | {"actor": {"id": "u"}}, {"Linear-Delivery": "d"})
    assert (built["event"], built["actor"], built["delivery_id"]) == (event, {"id": "u"}, "d")
    assert built.get(named or event) == payload.get("data")


def test_notion():
    built = typed(
        "notion",
        "page.updated",
        {"entity": {"id": "p", "type": "page"}, "workspace_id": "w"},
        {"X-Request-Id": "r"},
    )
    assert (built["event"], built["entity_id"], built["entity_type"]) == (
        "page.updated",
        "p",
        "page",
    )
    assert (built["workspace_id"], built["request_id"]) == ("w", "r")


@pytest.mark.parametrize(
    ("given", "tick_at"),
    [
        ("2026-01-31T09:30:00Z", "2026-01-31T09:30:00Z"),
        ("2026-01-31T09:30:00.123456789+01:00", "2026-01-31T09:30:00.123456789+01:00"),
        ("yesterday", "2026-05-28T20:26:40.123Z"),
        (None, "2026-05-28T20:26:40.123Z"),
    ],
)
def test_cron_has_a_tick_that_harn_can_read(given, tick_at):
    built = typed("cron", "tick", {"cron_id": "nightly", "schedule": "0 3 * * *", "tick_at": given})
    assert built["tick_at"] == tick_at
    assert (built["cron_id"], built["schedule"]) == ("nightly", "0 3 * * *")


def test_webhook():
    headers = {"Content-Type": "application/json", "X-Webhook-Source": "crm"}
    assert typed("webhook", "ping", {"a": 1}, headers) == {
        "provider": "webhook",
        "source": "crm",
        "content_type": "application/json",
        "raw": {"a": 1},
    }


@pytest.mark.parametrize(
    ("payload", "state", "artifact"),
    [
        ({"status": {"state": "completed"}, "artifact": {"a": 1}}, "completed", {"a": 1}),
        ({"statusUpdate": {"status": {"state": "cancelled"}}}, "canceled", None),
        ({"artifactUpdate": {"artifact": {"b": 2}}, "status": {"state": 3}}, None, {"b": 2}),
    ],
)
def test_a2a_push(payload, state, artifact):
    built = typed("a2a-push", "a2a.task.received", payload | {"task_id": "t", "sender": "s"})
    assert (built["kind"], built["task_id"], built["sender"]) == ("a2a.task.received", "t", "s")
    assert (built["task_state"], built["artifact"]) == (state, artifact)


@pytest.mark.parametrize("provider", sorted(STREAM_PROVIDERS))
def test_streams_name_their_place_as_text(provider):
    payload = {"topic": "orders", "partition": 3, "offset": 99, "key": None, "id": "k", "ts": True}
    built = typed(provider, "message", payload, {"X-Token": "s", "Tenant": "acme"})
    assert built == {
        "provider": provider,
        "event": "message",
        "source": None,
        "stream": "orders",
        "partition": "3",
        "offset": "99",
        "key": "k",
        "timestamp": None,
        "headers": {"x-token": "[redacted]", "tenant": "acme"},
        "raw": payload,
    }

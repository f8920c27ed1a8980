"""`fire`: what is ingested, what is printed, and each exit code."""

from __future__ import annotations

import json
import sqlite3

import pytest

HANDLERS = """
def broken(event):
    raise RuntimeError("funktioniert nie: ü")


greet = flaky = parked = refused = slow = stuck = broken
"""

PAYLOAD = {"action": "opened", "title": "Ünïcödé \u2603 \x00"}


def envelopes(program):
    path = program.folder / ".harn/orchestrator/events.sqlite"
    with sqlite3.connect(path) as database:
        rows = database.execute(
            "SELECT payload FROM events WHERE topic LIKE '%trigger.inbox.envelopes' "
            "ORDER BY topic, event_id"
        ).fetchall()
    database.close()
    return [json.loads(payload)["event"] for (payload,) in rows]


def test_without_a_file_the_event_is_synthetic(program):
    ran = program("fire", "new-issue", "--json")

    assert ran.code == 0
    [event] = envelopes(program)
    assert ran.json == {
        "trigger_id": "new-issue",
        "binding_key": "new-issue@v1",
        "event_id": event["id"],
        "workflow_id": f"dispatch/shop/new-issue/{event['id']}",
        "status": "accepted",
        "envelope": {"topic": "trigger.inbox.envelopes", "event_id": 1},
        "warning": None,
    }
    assert event["kind"] == "issues.opened"
    assert event["headers"] == {"x-harn-synthetic": "true", "x-harn-binding-id": "new-issue"}
    assert event["provider_payload"]["raw"] == {}


def test_without_worker_it_warns_on_stderr(program):
    ran = program("fire", "new-issue")

    assert ran.code == 0
    assert ran.out.startswith("new-issue@v1 accepted, event trigger_evt_")
    assert "warning: no worker of package shop was seen in the last minute" in ran.err


def test_a_payload_with_everything_that_can_be_said_about_it(program):
    (program.folder / "payload.json").write_text(json.dumps(PAYLOAD))

    ran = program(
        *("fire", "flaky", "--payload", "payload.json", "--kind", "issues.deleted"),
        *("--header", "X-GitHub-Delivery=d-1", "--header", "Authorization=secret=1"),
        *("--tenant", "acme", "--dedupe-key", "once", "--json"),
    )

    assert ran.code == 0, ran.err
    assert ran.json["envelope"] == {"topic": "tenant.acme.trigger.inbox.envelopes", "event_id": 1}
    [event] = envelopes(program)
    assert event["kind"] == "issues.deleted"
    assert event["tenant_id"] == "acme"
    assert event["dedupe_key"] == "once"
    assert event["headers"]["x-github-delivery"] == "d-1"
    assert "secret" not in json.dumps(event)
    assert event["provider_payload"]["raw"] == PAYLOAD


def test_a_payload_from_stdin(program):
    ran = program("fire", "new-issue", "--payload", "-", "--json", stdin=json.dumps(PAYLOAD))

    assert ran.code == 0, ran.err
    [event] = envelopes(program)
    assert event["provider_payload"]["raw"] == PAYLOAD
    assert "x-harn-synthetic" not in event["headers"]


def test_an_event_from_stdin_keeps_its_id_and_is_taken_once(program):
    program("fire", "new-issue", "--payload", "-", stdin=json.dumps(PAYLOAD))
    [event] = envelopes(program)
    event |= {"id": "trigger_evt_mine", "dedupe_key": "mine", "tenant_id": None}
    event["headers"] = {"authorization": "Bearer abc"}

    first = program("fire", "new-issue", "--event", "-", "--json", stdin=json.dumps(event))
    second = program("fire", "new-issue", "--event", "-", "--json", stdin=json.dumps(event))
    other = program(
        *("fire", "new-issue", "--event", "-", "--dedupe-key", "x", "--json"),
        stdin=json.dumps(event),
    )

    assert [first.code, second.code, other.code] == [0, 0, 0]
    assert first.json["event_id"] == "trigger_evt_mine"
    assert first.json["status"] == "accepted"
    assert second.json["status"] == "duplicate"
    assert second.json["envelope"] is None
    assert other.json["status"] == "accepted"
    assert "abc" not in json.dumps(envelopes(program))


def test_a_filtered_event_appends_nothing(program):
    ran = program("fire", "broken", "--kind", "ping")

    assert ran.code == 0
    assert "broken@v1 filtered" in ran.out
    assert "no worker" not in ran.err
    assert envelopes(program) == []


def test_nothing_but_json_is_on_stdout_and_the_handler_ran_here(program, temporal_address):
    ran = program(
        *("fire", "new-issue", "--payload", "-", "--wait", "--json"),
        *("--address", temporal_address),
        stdin=json.dumps(PAYLOAD),
    )

    assert ran.code == 0, ran.err
    assert ran.json["status"] == "succeeded"
    assert ran.json["result"]["title"] == PAYLOAD["title"]
    assert "a handler prints" in ran.err


def test_wait_prints_the_outcome_of_a_success(program, temporal_address):
    ran = program("fire", "flaky", "--wait", "--json", "--address", temporal_address)

    assert ran.code == 0, ran.err
    [event] = envelopes(program)
    assert ran.json == {
        "trigger_id": "flaky",
        "binding_key": "flaky@v1",
        "event_id": event["id"],
        "attempt_count": 3,
        "status": "succeeded",
        "handler_kind": "local",
        "target_uri": "flaky",
        "replay_of_event_id": None,
        "result": "done at last",
        "result_address": None,
        "error": None,
    }
    assert "flaky@v1 failed in attempt 1, again at once: ValueError: attempt 1 fails" in ran.err


def test_wait_for_people(program, temporal_address):
    ran = program("fire", "flaky", "--wait", "--address", temporal_address)

    assert ran.code == 0, ran.err
    assert ran.out == 'flaky@v1 succeeded, 3 attempts\n"done at last"\n'


@pytest.mark.parametrize(
    ("trigger", "ended"),
    [
        ("broken", (1, "dlq", "RuntimeError: never works")),
        ("refused", (1, "failed", "not yours")),
        ("parked", (0, "waiting", "for a human")),
    ],
)
def test_wait_exits_by_how_the_dispatch_ended(program, temporal_address, trigger, ended):
    code, status, error = ended
    ran = program("fire", trigger, "--wait", "--json", "--address", temporal_address)

    assert ran.code == code, ran.err
    assert ran.json["status"] == status
    assert error in ran.json["error"]
    assert "Traceback" not in ran.err


def test_wait_on_a_duplicate_says_so_and_runs_nothing(program, temporal_address):
    common = ("fire", "new-issue", "--dedupe-key", "k", "--json", "--address", temporal_address)
    assert program(*common, "--wait").json["status"] == "succeeded"

    again = program(*common, "--wait")

    assert again.code == 0
    assert again.json["status"] == "duplicate"


def test_wait_without_service_ingests_nothing_and_exits_3(program):
    ran = program("fire", "new-issue", "--wait", "--address", "127.0.0.1:1")

    assert ran.code == 3
    assert ran.out == ""
    assert "127.0.0.1:1" in ran.err
    assert "temporal server start-dev" in ran.err
    assert "Traceback" not in ran.err
    assert not (program.folder / ".harn/orchestrator/events.sqlite").exists()


def test_an_event_log_that_cannot_be_opened_exits_3(program):
    ran = program("fire", "new-issue", HARN_EVENT_LOG_SQLITE_PATH=str(program.folder))

    assert ran.code == 3, ran.err
    assert ran.out == ""
    assert str(program.folder) in ran.err
    assert "Traceback" not in ran.err


def test_a_store_in_memory_is_warned_of(program):
    ran = program("fire", "new-issue", HARN_EVENT_LOG_BACKEND="memory")

    assert ran.code == 0, ran.err
    assert "warning: the EventLog is in memory" in ran.err


def test_a_locale_that_lacks_a_character_is_no_failure(program, temporal_address):
    (program.folder / "lib.py").write_text(HANDLERS, "utf-8")

    ran = program(
        "fire", "broken", "--wait", "--address", temporal_address, PYTHONIOENCODING="ascii"
    )

    assert ran.code == 1
    assert ran.out == "broken@v1 dlq, 1 attempt: RuntimeError: funktioniert nie: \\xfc\n"

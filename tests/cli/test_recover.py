"""`recover`, and what a worker says at its start of envelopes without a dispatch."""

from __future__ import annotations

import json
import sqlite3

import pytest

ENVELOPES = "trigger.inbox.envelopes"


def database(program):
    return sqlite3.connect(program.folder / ".harn/orchestrator/events.sqlite")


def pass_by(program):
    """Move the pump's cursor past what is there, as a pump does that knows none of the triggers."""
    with database(program) as connection:
        connection.execute(
            "INSERT INTO consumers SELECT topic, 'harn-temporal.shop', max(event_id), 0 "
            "FROM events WHERE topic = ? GROUP BY topic",
            (ENVELOPES,),
        )
    connection.close()


def records(program, topic):
    with database(program) as connection:
        rows = connection.execute(
            "SELECT kind, payload FROM events WHERE topic = ? ORDER BY event_id", (topic,)
        ).fetchall()
    connection.close()
    return [(kind, json.loads(payload)) for kind, payload in rows]


@pytest.mark.parametrize("options", [(), ("--dry-run", "--yes")])
def test_one_of_two_ways_must_be_chosen(program, options):
    program("fire", "new-issue")
    ran = program("recover", *options)
    assert ran.code == 2
    assert "--dry-run" in ran.err
    assert "--yes" in ran.err
    assert records(program, "trigger.operations.audit") == []


def test_wrong_age_and_no_store(program):
    ran = program("recover", "--envelope-age", "soon", "--dry-run")
    assert (ran.code, "'soon' is not a duration" in ran.err) == (2, True)
    ran = program("recover", "--dry-run")
    assert (ran.code, "there is no EventLog" in ran.err) == (3, True)


def test_a_dry_run_then_yes(program):
    sent = program("fire", "new-issue", "--json").json["event_id"]
    pass_by(program)
    waiting = program("fire", "flaky", "--kind", "issues.closed", "--json").json["event_id"]

    young = program("recover", "--dry-run", "--json").json
    assert (young["matched_count"], young["envelopes"]) == (0, [])

    common = ("recover", "--envelope-age", "0ms", "--json")
    shown = program(*common, "--dry-run").json
    assert (shown["dry_run"], shown["matched_count"], shown["executed_count"]) == (True, 2, 0)
    assert [(each["event_id"], each["passed_by_pump"]) for each in shown["envelopes"]] == [
        (sent, True),
        (waiting, False),
    ]
    assert len(records(program, ENVELOPES)) == 2

    done = program(*common, "--yes").json
    assert (done["executed_count"], done["skipped_count"]) == (1, 1)
    assert [payload["event"]["id"] for _, payload in records(program, ENVELOPES)] == [
        sent,
        waiting,
        sent,
    ]
    assert program(*common, "--yes").json["executed_count"] == 0
    audits = [payload for _, payload in records(program, "trigger.operations.audit")]
    assert [(each["operation"], each["dry_run"], each["executed_count"]) for each in audits] == [
        ("recover", True, 0),
        ("recover", True, 0),
        ("recover", False, 1),
        ("recover", False, 0),
    ]


def test_for_people(program):
    program("fire", "new-issue")
    pass_by(program)
    assert "No envelope of package shop older than 5m" in program("recover", "--dry-run").out
    ran = program("recover", "--envelope-age", "0s", "--dry-run")
    assert ran.code == 0
    assert "new-issue@v1" in ran.out
    assert ran.out.endswith(
        "1 stranded, 0 lost by Temporal, 0 waiting for a worker. Nothing was changed.\n"
    )
    ran = program("recover", "--envelope-age", "0s", "--yes")
    assert ran.out.endswith("1 appended again, 0 waiting for a worker.\n")


def test_a_worker_says_at_its_start_what_is_stranded(program, temporal_address, read_until):
    program("fire", "new-issue")
    pass_by(program)
    with database(program) as connection:
        connection.execute(
            "UPDATE events SET occurred_at_ms = occurred_at_ms - 600000 WHERE topic = ?",
            (ENVELOPES,),
        )
    connection.close()
    assert program("log", "rebuild").code == 0
    process = program.start("worker", "--address", temporal_address)
    lines = read_until(process, "Ready")
    [line] = [line for line in lines if line.startswith("Stranded")]
    assert "1 envelope without a dispatch" in line
    assert ("startup_stranded_envelopes", {"count": 1}) in records(
        program, "orchestrator.lifecycle"
    )

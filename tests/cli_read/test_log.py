import contextlib
import json
import sqlite3
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from harn_temporal.cli.record_lines import record_text
from harn_temporal.eventlog.log import Append, EventLog, Record
from harn_temporal.headers import PROVENANCE_PREV_HASH, PROVENANCE_RECORD_HASH, PROVENANCE_SCHEMA

NOW_MS = 1_767_225_600_000
TOPIC = "trigger.outbox"


def records(count: int, topic: str = TOPIC) -> list[Append]:
    return [
        Append(topic, "note", {"n": n}, {"event_id": f"event-{n % 2}"}, NOW_MS + n)
        for n in range(1, count + 1)
    ]


@pytest.fixture
def five(program: Any) -> None:
    program.fill(lambda log: log.append(records(5)))


def ids(lines: list[Any]) -> list[int]:
    return [line["event_id"] for line in lines]


def test_lists_topics(program: Any) -> None:
    program.fill(lambda log: log.append([*records(2), *records(1, "triggers.lifecycle")]))
    assert program("log", "topics", "--json").json == {
        "topics": [
            {"topic": "trigger.outbox", "last_id": 2},
            {"topic": "triggers.lifecycle", "last_id": 1},
        ]
    }
    assert program("log", "topics", "trigger.", "--json").json == {
        "topics": [{"topic": "trigger.outbox", "last_id": 2}]
    }
    assert [row.split() for row in program("log", "topics").out.splitlines()[2:]] == [
        ["trigger.outbox", "2"],
        ["triggers.lifecycle", "1"],
    ]


def test_reads_records_as_lines_of_json(program: Any, five: None) -> None:
    (first, second) = program("log", "read", TOPIC, "--limit", "2", "--json").lines
    hashes = {name: first["headers"].pop(name) for name in (PROVENANCE_RECORD_HASH,)}
    assert first == {
        "topic": TOPIC,
        "event_id": 1,
        "kind": "note",
        "occurred_at_ms": NOW_MS + 1,
        "headers": {"event_id": "event-1", PROVENANCE_SCHEMA: "harn-eventlog-provenance-v1"},
        "payload": {"n": 1},
    }
    assert second["headers"][PROVENANCE_PREV_HASH] == hashes[PROVENANCE_RECORD_HASH]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((), [1, 2, 3, 4, 5]),
        (("--after", "3"), [4, 5]),
        (("--last", "2"), [4, 5]),
        (("--last", "4", "--after", "3"), [4, 5]),
        (("--last", "9"), [1, 2, 3, 4, 5]),
        (("--event", "event-0"), [2, 4]),
        (("--event", "event-0", "--limit", "1"), [2]),
        (("--kind", "note", "--after", "4"), [5]),
        (("--kind", "other"), []),
    ],
)
def test_chooses_records(
    program: Any, five: None, arguments: tuple[str, ...], expected: list[int]
) -> None:
    assert ids(program("log", "read", TOPIC, "--json", *arguments).lines) == expected


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--kind", "notes"), "No records of kind 'notes'. Those here are of kind note.\n"),
        (("--event", "event-7"), "No records about event 'event-7'.\n"),
        (("--after", "5"), "No records.\n"),
        (("--kind", "note", "--after", "5"), "No records.\n"),
    ],
)
def test_says_why_there_is_nothing(
    program: Any, five: None, arguments: tuple[str, ...], expected: str
) -> None:
    ran = program("log", "read", TOPIC, "--json", *arguments)
    assert (ran.code, ran.out, ran.err) == (0, "", expected)


def test_names_the_event_that_may_have_been_meant(program: Any, five: None) -> None:
    headers = {"trigger_id": "triage", "event_id": "trigger_evt_17"}
    payload = {"trigger_id": "triage", "event": {"id": "trigger_evt_17"}}
    inbox = Append("trigger.inbox.envelopes", "event_ingested", payload, headers)
    program.fill(lambda log: log.append([inbox]))
    mistyped = program("log", "read", TOPIC, "--event", "trigger_evt_71")
    assert mistyped.err == (
        "No records about event 'trigger_evt_71'. Did you mean trigger_evt_17?\n"
    )
    assert program("log", "read", TOPIC, "--event", "trigger_evt_17").err == "No records.\n"


def test_reads_more_than_a_page(program: Any) -> None:
    program.fill(lambda log: log.append(records(1001)))
    assert ids(program("log", "read", TOPIC, "--json").lines) == list(range(1, 1002))


HEADERS = {"binding_key": "triage@v2", "attempt": "3"}


def test_people_see_whole_lines_in_a_pipe(program: Any) -> None:
    """Without what is null or said already, and without control characters."""
    payload = {"text": "a\x1b" + "b" * 300, "binding_key": "triage@v2", "attempt": 3, "error": None}
    program.fill(lambda log: log.append([Append(TOPIC, "note", payload, HEADERS, NOW_MS)]))
    text = r"a\u001b" + "b" * 300
    assert program("log", "read", TOPIC).out == (
        f'1  2026-01-01T00:00:00.000Z  note  triage@v2 attempt 3  {{"text":"{text}"}}\n'
    )


@pytest.mark.parametrize(
    ("width", "expected"),
    [
        (63, '7  2026-01-01T00:00:00.000Z  note  triage@v2 attempt 3  {"n":9}'),
        (62, '7  2026-01-01T00:00:00.000Z  note  triage@v2 attempt 3\n    {"n":9}'),
        (10, '7  2026-01\n    {"n":9'),
    ],
)
def test_a_record_fits_a_terminal(width: int, expected: str) -> None:
    record = Record(TOPIC, 7, "note", b'{"n":9}', HEADERS, NOW_MS)
    assert record_text(record, with_topic=False, width=width) == expected


def test_an_unknown_topic_is_refused(program: Any, five: None) -> None:
    for command in (("read", "nowhere"), ("verify", "nowhere")):
        ran = program("log", *command, "--json")
        assert (ran.code, ran.out) == (2, "")
        assert ran.err == "error: no topic 'nowhere'. `harn-temporal log topics` lists them\n"


def test_tail_begins_with_the_last_ones(program: Any, five: None) -> None:
    lines = program("log", "tail", TOPIC, "--last", "2", "--limit", "2", "--json").lines
    assert ids(lines) == [4, 5]


def test_tail_says_which_topics_are_not_there_yet(program: Any, five: None) -> None:
    ran = program("log", "tail", TOPIC, "trigger.outbx", "--last", "1", "--limit", "1", "--json")
    assert ids(ran.lines) == [5]
    assert ran.err == (
        "warning: no topic 'trigger.outbx' yet; its records are printed once there are some\n"
    )


def test_tail_shows_what_another_process_appends(program: Any, five: None) -> None:
    """On the topics that exist, and on one that begins meanwhile."""
    command = program.command("log", "tail", "--last", "1", "--limit", "3", "--json")
    tail = subprocess.Popen(command, env=program.environment, stdout=subprocess.PIPE, text=True)
    guard = threading.Timer(60, tail.kill)
    guard.start()
    try:
        assert tail.stdout is not None
        assert json.loads(tail.stdout.readline())["event_id"] == 5  # from now on it follows
        program.fill(lambda log: log.append([*records(1), *records(1, "triggers.lifecycle")]))
        rest = [json.loads(line) for line in tail.stdout]
        assert tail.wait() == 0
    finally:
        guard.cancel()
        tail.kill()
        tail.communicate()
    assert {(line["topic"], line["event_id"]) for line in rest} == {
        ("trigger.outbox", 6),
        ("triggers.lifecycle", 1),
    }


def intact(topic: str, count: int) -> dict[str, Any]:
    return {
        "topic": topic,
        "intact": True,
        "records": count,
        "sealed": count,
        "unsealed": 0,
        "first_id": 1,
        "findings": [],
    }


def test_verifies_each_topic(program: Any) -> None:
    program.fill(lambda log: log.append([*records(3), *records(1, "triggers.lifecycle")]))
    both = [intact("trigger.outbox", 3), intact("triggers.lifecycle", 1)]
    assert program("log", "verify", "--json").json == {"intact": True, "topics": both}
    assert program("log", "verify", TOPIC, "--json").json == {"intact": True, "topics": both[:1]}
    assert program("log", "verify").out.splitlines()[2].split() == [TOPIC, "3", "0", "intact"]


def insert_plainly(program: Any, topic: str, occurred_at_ms: object) -> None:
    """A record as another program writes it, with whatever SQLite lets pass."""
    if program.settings().kind == "file":
        pytest.skip("a row of SQLite")
    with contextlib.closing(sqlite3.connect(program.settings().path)) as connection, connection:
        connection.execute(
            "INSERT INTO events VALUES (?, 6, 'note', '{}', '{}', ?)", (topic, occurred_at_ms)
        )


def test_a_topic_that_is_none_hides_no_other(program: Any, five: None) -> None:
    insert_plainly(program, "no topic", NOW_MS)

    ran = program("log", "verify", "--json")

    assert [topic["topic"] for topic in ran.json["topics"]] == [TOPIC]
    assert ran.err == "warning: left out 'no topic', which another program wrote: it is no topic\n"
    assert ids(program("log", "tail", "--last", "9", "--limit", "5", "--json").lines) == [
        1,
        2,
        3,
        4,
        5,
    ]


@pytest.mark.parametrize(
    ("occurred_at_ms", "shown"),
    [(2**62, "9999-12-31T23:59:59.999Z"), (-(2**62), "0001-01-01T00:00:00.000Z")],
)
def test_a_time_beyond_the_calendar_is_shown(
    program: Any, five: None, occurred_at_ms: int, shown: str
) -> None:
    insert_plainly(program, TOPIC, occurred_at_ms)

    ran = program("log", "read", TOPIC, "--last", "1")

    assert (ran.code, ran.out) == (0, f"6  {shown}  note  {{}}\n")


def test_rebuilds(program: Any, filled: Any) -> None:
    before = program("trigger", "ls", "--all", "--json").json
    result = program("log", "rebuild", "--json").json
    assert result["rebuilt"] is True
    assert result["took_ms"] >= 0
    assert program("trigger", "ls", "--all", "--json").json == before


def test_no_store_is_no_empty_store(program: Any) -> None:
    ran = program("log", "topics", "--json")
    assert (ran.code, ran.out) == (3, "")
    assert ran.err.startswith(f"error: there is no EventLog at {program.state_dir}")
    assert "--state-dir" in ran.err
    assert not program.state_dir.exists()


def test_reading_imports_neither_temporal_nor_cel(program: Any, filled: Any) -> None:
    probe = (
        "import sys; from harn_temporal.entry import run; code = run(sys.argv[1:]);"
        "print(code, [name for name in ('temporalio', 'cel') if name in sys.modules])"
    )
    for command in (("dlq", "ls"), ("trigger", "ls"), ("log", "verify"), ("log", "read", TOPIC)):
        program_path, *arguments = program.command(*command)
        python = Path(program_path).parent / "python"
        out = subprocess.run(
            [python, "-c", probe, *arguments],
            env=program.environment, capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip
        assert out.splitlines()[-1] == "0 []"


class TestTampering:
    """Rows changed behind the log's back are found, whatever was changed."""

    @pytest.fixture
    def store(self, program: Any, five: None) -> sqlite3.Connection:
        if program.environment["HARN_EVENT_LOG_BACKEND"] != "sqlite":
            pytest.skip("one backend shows it: what is checked are records, not rows")
        connection = sqlite3.connect(program.state_dir / "events.sqlite", isolation_level=None)
        yield connection
        connection.close()

    def findings(self, program: Any) -> list[tuple[int, str]]:
        ran = program("log", "verify", TOPIC, "--json")
        assert ran.code == 1
        verified = json.loads(ran.out)
        (topic,) = verified["topics"]
        assert (verified["intact"], topic["intact"]) == (False, False)
        return [(finding["event_id"], finding["flaw"]) for finding in topic["findings"]]

    @pytest.mark.parametrize(
        "change",
        [
            "payload = CAST('{\"n\":9}' AS BLOB)",
            "kind = 'other'",
            "occurred_at_ms = 1",
            "headers = json_set(headers, '$.event_id', 'event-9')",
        ],
    )
    def test_an_altered_record(self, program: Any, store: sqlite3.Connection, change: str) -> None:
        store.execute(f"UPDATE events SET {change} WHERE event_id = 3")
        assert self.findings(program) == [(3, "altered")]

    def test_a_removed_record(self, program: Any, store: sqlite3.Connection) -> None:
        store.execute("DELETE FROM events WHERE event_id = 3")
        assert self.findings(program) == [(4, "missing")]

    def test_the_last_records_removed(self, program: Any, store: sqlite3.Connection) -> None:
        store.execute("DELETE FROM events WHERE event_id > 3")
        assert self.findings(program) == [(6, "missing")]

    def test_the_first_records_dropped_on_purpose(
        self, program: Any, store: sqlite3.Connection
    ) -> None:
        store.execute("DELETE FROM events WHERE event_id < 3")
        (topic,) = program("log", "verify", TOPIC, "--json").json["topics"]
        assert topic == intact(TOPIC, 3) | {"first_id": 3}

    def test_a_replaced_record(self, program: Any, store: sqlite3.Connection) -> None:
        """A record with a hash that is right for itself, but that its successor does not name."""
        other: Any = program.fill(self._sealed_elsewhere)
        store.execute(
            "UPDATE events SET payload = ?, headers = ? WHERE topic = ? AND event_id = 3",
            (other.raw, json.dumps(dict(other.headers)), TOPIC),
        )
        assert self.findings(program) == [(4, "unlinked")]

    async def _sealed_elsewhere(self, log: EventLog) -> Any:
        from dataclasses import replace

        from harn_temporal.eventlog.provenance import sealed_headers, stored_hash

        second, third = await log.read(TOPIC, 1, 2)
        forged = replace(third, raw=b'{"n":9}')
        headers = sealed_headers(
            topic=TOPIC,
            event_id=3,
            kind=third.kind,
            raw=forged.raw,
            headers={"event_id": "event-1"},
            occurred_at_ms=third.occurred_at_ms,
            prev_hash=stored_hash(second),
        )
        return replace(forged, headers=headers)

    def test_a_record_of_another_program_without_hash(
        self, program: Any, store: sqlite3.Connection
    ) -> None:
        store.execute(
            "INSERT INTO events VALUES (?, 6, 'note', CAST('nonsense' AS BLOB), '{}', 1)", (TOPIC,)
        )
        (topic,) = program("log", "verify", TOPIC, "--json").json["topics"]
        assert topic == intact(TOPIC, 6) | {"sealed": 5, "unsealed": 1}
        (line,) = program("log", "read", TOPIC, "--last", "1", "--json").lines
        assert (line["payload"], line["undecodable"]) == (None, "nonsense")

    def test_people_are_told_where(self, program: Any, store: sqlite3.Connection) -> None:
        store.execute("UPDATE events SET kind = 'other' WHERE event_id = 3")
        ran = program("log", "verify")
        assert ran.code == 1
        assert ran.out.splitlines()[2].split() == [TOPIC, "5", "0", "1", "found"]
        assert ran.err.startswith(f"{TOPIC} 3 altered: it carries sha256:")

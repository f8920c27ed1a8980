"""What holds for the SQLite file in particular: its neighbours, its schema, its failures."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import subprocess
import sys
from asyncio.subprocess import PIPE
from contextlib import closing
from pathlib import Path

import pytest

from harn_temporal.errors import StoreError, StoreUnavailableError, StoreUpgradedError
from harn_temporal.eventlog import StoreSettings, open_event_log, sqlite
from harn_temporal.eventlog.inbox import InboxProjection
from harn_temporal.eventlog.log import Append
from harn_temporal.eventlog.sqlite_errors import mapped
from harn_temporal.eventlog.sqlite_schema import split_script
from harn_temporal.eventlog.statements import load_migrations, load_statements
from harn_temporal.headers import OUTCOME, WORKFLOW_ID
from harn_temporal.inspection.chain import verify

BOUND = 60

APPENDER = """
import asyncio, sys
from pathlib import Path
from harn_temporal.eventlog import StoreSettings, open_event_log
from harn_temporal.eventlog.log import Append
from harn_temporal.headers import OUTCOME, WORKFLOW_ID

async def main(kind, path, name):
    log = await open_event_log(StoreSettings(kind, Path(path)))
    for number in range(200):
        topic = "shared" if number % 2 else f"own.{name}"
        batch = [Append(topic, "noted", {"by": name, "number": number})]
        if number % 50 == 0:
            headers = {WORKFLOW_ID: f"{name}/{number}", OUTCOME: "failed"}
            batch.append(Append("trigger.outbox", "ended", {}, headers))
        await log.append(batch)
    await log.close()

sys.stdin.read()
asyncio.run(main(*sys.argv[1:]))
"""

PLAIN_SQL = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], timeout=30)
with connection:
    connection.execute(
        "INSERT INTO events VALUES ('trigger.outbox', 1, 'ended', ?, ?, 5)",
        (b'{}', '{"harn_temporal.workflow_id": "theirs", "harn_temporal.outcome": "failed"}'),
    )
"""


def note(text="hello"):
    return Append("notes", "noted", {"text": text})


@pytest.mark.parametrize("kind", ["sqlite", "file"])
async def test_processes_that_open_and_append_at_once_lose_nothing(tmp_path, kind):
    path = tmp_path / ("new.sqlite" if kind == "sqlite" else "new")
    command = [sys.executable, "-c", APPENDER, kind, str(path)]
    processes = [
        await asyncio.create_subprocess_exec(*command, str(number), stdin=PIPE, stderr=PIPE)
        for number in range(8)
    ]
    # They begin when their input ends: all at once.
    ends = await asyncio.wait_for(asyncio.gather(*[p.communicate(b"") for p in processes]), BOUND)
    assert [errors for _, errors in ends] == [b""] * 8
    assert [process.returncode for process in processes] == [0] * 8
    log = await open_event_log(StoreSettings(kind, path))
    heads = {head.topic: head.last_id for head in await log.topics()}
    assert heads == {"shared": 800, "trigger.outbox": 32} | {f"own.{n}": 100 for n in range(8)}
    shared = await log.read("shared", limit=1000)
    assert [record.event_id for record in shared] == list(range(1, 801))
    written = sorted((record.payload["by"], record.payload["number"]) for record in shared)
    assert written == sorted((str(by), number) for by in range(8) for number in range(1, 200, 2))
    for topic, count in heads.items():
        verified = await verify(log, topic)
        assert (verified.records, verified.sealed, verified.findings) == (count, count, [])
    names = [f"{by}/{number}" for by in range(8) for number in range(0, 200, 50)]
    outcomes = await log.query(lambda r: [r.inbox.outcome(name) for name in names])
    assert {outcome.event_id for outcome in outcomes} == set(range(1, 33))
    await log.close()


async def test_a_row_by_plain_sql_is_folded_before_the_next_read(sqlite_lab):
    """Even one that raises no head."""
    log = await sqlite_lab.open()
    command = [sys.executable, "-c", PLAIN_SQL, str(sqlite_lab.settings.path)]
    assert await asyncio.to_thread(subprocess.run, command, timeout=BOUND)
    assert (await log.query(lambda r: r.inbox.outcome("theirs"))).status == "failed"
    assert [head.last_id for head in await log.topics()] == [1]
    (record,) = (await log.append([Append("trigger.outbox", "noted", {})])).records
    assert record.event_id == 2
    assert (await verify(log, "trigger.outbox")).intact


async def test_a_long_backlog_is_folded_in_bounded_transactions(sqlite_lab):
    log = await sqlite_lab.open()
    with sqlite_lab.connection() as connection:
        headers = [
            json.dumps({WORKFLOW_ID: f"w{number}", OUTCOME: "failed"}) for number in range(20_000)
        ]
        connection.executemany(
            "INSERT INTO events VALUES ('trigger.outbox', ?, 'ended', x'7b7d', ?, 5)",
            list(enumerate(headers, start=1)),
        )
    folded = [0]

    def follow(statement: str) -> None:
        if statement.startswith("COMMIT"):
            folded.append(0)
        elif "_inbox_outcomes" in statement:
            folded[-1] += 1

    log._writer._connection.set_trace_callback(follow)
    last = await log.query(lambda r: r.inbox.outcome("w19999"))
    log._writer._connection.set_trace_callback(None)
    assert last.event_id == 20_000
    assert sum(folded) == 20_000
    assert max(folded) <= 500


async def test_rows_in_the_wrong_order_fold_like_the_log(sqlite_lab):
    log = await sqlite_lab.open()
    fields = ("id", "binding_key", "provider", "kind", "handler_kind", "definition_fingerprint")
    with sqlite_lab.connection() as connection:
        for event_id, state in ((2, "active"), (1, "registering")):
            payload = dict.fromkeys(fields, "x") | {"version": 1, "to_state": state}
            connection.execute(
                "INSERT INTO events VALUES (?, ?, 'state_transition', ?, '{}', 5)",
                ("triggers.lifecycle", event_id, json.dumps(payload).encode()),
            )
    grown = await log.query(lambda r: r.bindings.get("x", 1).state)
    await log.rebuild()
    assert grown == await log.query(lambda r: r.bindings.get("x", 1).state) == "active"


async def test_a_row_of_any_type_does_not_stop_us(sqlite_lab):
    log = await sqlite_lab.open()
    with sqlite_lab.connection() as connection:
        rows = [
            (b"k\xff", "{}", "not json", "later"),
            (5, 7, 9, 1.5),
            ("kind", b"\xff", b"[]", 2**62),
            ("kind \x00", "{}", '{"a": 1, "b": "\\ud800"}', 1),
        ]
        for number, row in enumerate(rows, start=1):
            connection.execute(
                "INSERT INTO events VALUES ('trigger.outbox', ?, ?, ?, ?, ?)", (number, *row)
            )
    await log.append([Append("trigger.outbox", "noted", {})])
    records = await log.read("trigger.outbox")
    assert [record.kind for record in records] == ["k\ufffd", "5", "kind", "kind \x00", "noted"]
    assert [record.occurred_at_ms for record in records[:4]] == [0, 0, 2**62, 1]
    assert [dict(record.headers) for record in records[:4]] == [{}, {}, {}, {"b": "\ufffd"}]
    assert records[1].payload == 7
    with pytest.raises(StoreError, match=r"record 3 of topic trigger\.outbox .* not UTF-8"):
        _ = records[2].payload
    assert (await verify(log, "trigger.outbox")).intact


@pytest.mark.parametrize("event_id", ["x", 1.5, b"x"])
async def test_a_row_whose_id_is_no_integer_is_no_record(sqlite_lab, event_id):
    log = await sqlite_lab.open()
    await log.append([Append("trigger.outbox", "noted", {})])
    with sqlite_lab.connection() as connection:
        connection.execute(
            "INSERT INTO events VALUES ('trigger.outbox', ?, 'noted', '{}', '{}', 5)", (event_id,)
        )

    assert [head.last_id for head in await log.topics()] == [1]
    written = await log.append([Append("trigger.outbox", "noted", {})])
    assert written.records[0].event_id == 2
    await log.rebuild()
    assert [record.event_id for record in await log.read("trigger.outbox")] == [1, 2]
    assert (await verify(log, "trigger.outbox")).intact


async def test_a_file_that_harn_made_is_taken_over(sqlite_lab):
    path = sqlite_lab.settings.path
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript("""
            CREATE TABLE topic_heads (topic TEXT PRIMARY KEY, last_id INTEGER NOT NULL);
            CREATE TABLE events (
              topic TEXT NOT NULL, event_id INTEGER NOT NULL, kind TEXT NOT NULL,
              payload TEXT NOT NULL, headers TEXT NOT NULL, occurred_at_ms INTEGER NOT NULL,
              PRIMARY KEY (topic, event_id)
            );
            CREATE TABLE consumers (
              topic TEXT NOT NULL, consumer_id TEXT NOT NULL, cursor INTEGER NOT NULL,
              updated_at_ms INTEGER NOT NULL, PRIMARY KEY (topic, consumer_id)
            );
            INSERT INTO topic_heads VALUES ('trigger.inbox.claims', 1);
            INSERT INTO events VALUES ('trigger.inbox.claims', 1, 'dedupe_claim',
              '{"binding_id":"b","dedupe_key":"d","expires_at_ms":9000000000000}', '{}', 5);
            INSERT INTO consumers VALUES ('trigger.inbox.claims', 'harn', 1, 5);
        """)
    log = await sqlite_lab.open()
    assert await log.query(lambda r: r.inbox.claim_expiry("", "b", "d")) == 9_000_000_000_000
    assert await log.query(lambda r: r.cursor("trigger.inbox.claims", "harn")) == 1
    appended = await log.append([Append("trigger.inbox.claims", "noted", {})], key="k")
    assert appended.records[0].event_id == 2
    assert (await verify(log, "trigger.inbox.claims")).sealed == 1


async def test_columns_are_those_that_harn_knows(sqlite_lab):
    await sqlite_lab.open()
    with sqlite_lab.connection() as connection:
        found = {
            table: [
                (name, kind, not_null)
                for _, name, kind, not_null, _, _ in connection.execute(
                    f"PRAGMA table_info({table})"
                )
            ]
            for table in ("topic_heads", "events", "consumers", "event_idempotency_keys")
        }
        (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
    text, number = ("TEXT", 1), ("INTEGER", 1)
    assert mode == "wal"
    assert found == {
        "topic_heads": [("topic", *text), ("last_id", *number)],
        "events": [
            ("topic", *text),
            ("event_id", *number),
            ("kind", *text),
            ("payload", "BLOB", 1),
            ("headers", *text),
            ("occurred_at_ms", *number),
        ],
        "consumers": [
            ("topic", *text),
            ("consumer_id", *text),
            ("cursor", *number),
            ("updated_at_ms", *number),
        ],
        "event_idempotency_keys": [
            ("topic", *text),
            ("key", *text),
            ("value", *text),
            ("event_id", *number),
        ],
    }


async def test_the_schema_is_the_sum_of_the_migrations(sqlite_lab):
    await sqlite_lab.open()
    with sqlite_lab.connection() as connection:
        found = schema(connection)
        applied = connection.execute("SELECT version FROM harn_temporal_migrations").fetchall()
    with closing(sqlite3.connect(":memory:")) as fresh:
        for _, script in load_migrations(["sqlite"]):
            fresh.executescript(script)
        expected = schema(fresh)
    assert found == expected
    numbers = [number for number, _ in load_migrations(["sqlite"])]
    assert applied == [(number,) for number in numbers]
    assert numbers == list(range(1, len(numbers) + 1))


def schema(connection) -> dict[str, str]:
    """Without the tables of projections, which have no migrations, and the table of versions."""
    rows = connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL")
    return {
        name: sql
        for name, sql in rows
        if not name.startswith("harn_temporal_g1_") and name != "harn_temporal_migrations"
    }


def test_every_statement_is_named_once_and_complete():
    statements = load_statements(["sqlite", "file"])
    assert len(statements) > 50
    assert not [name for name, text in statements.items() if not text]
    script = "CREATE TABLE a (b);\n-- a; comment\nCREATE TRIGGER t AFTER INSERT ON a\nBEGIN\n"
    script += "  DELETE FROM a;\n  DELETE FROM a;\nEND;\nSELECT 1"
    assert [part.split()[0] for part in split_script(script)] == ["CREATE", "CREATE", "SELECT"]


# Failures


async def test_a_file_that_is_no_database_is_refused(sqlite_lab):
    sqlite_lab.settings.path.write_text("no database, and long enough to be seen as such" * 50)
    with pytest.raises(StoreError, match=r"events\.sqlite cannot be used: it is not a SQLite"):
        await sqlite_lab.open()


async def test_a_database_of_another_program_is_refused_and_left_alone(sqlite_lab):
    with sqlite_lab.connection() as connection:
        connection.execute("CREATE TABLE events (at TEXT, what TEXT)")
    with pytest.raises(StoreError, match="its table events is another program's"):
        await sqlite_lab.open()
    with sqlite_lab.connection() as connection:
        tables = connection.execute("SELECT name FROM sqlite_master").fetchall()
    assert tables == [("events",)]


async def test_a_directory_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StoreUnavailableError, match=r"file.*--state-dir"):
        await open_event_log(StoreSettings("sqlite", tmp_path / "file" / "events.sqlite"))


async def test_a_path_that_is_a_directory_is_named(tmp_path):
    with pytest.raises(StoreUnavailableError, match="cannot be opened"):
        await open_event_log(StoreSettings("sqlite", tmp_path))


async def test_a_schema_of_a_newer_version_is_refused(sqlite_lab):
    await (await sqlite_lab.open()).close()
    with sqlite_lab.connection() as connection:
        connection.execute("INSERT INTO harn_temporal_migrations VALUES (9999, 'later')")
    with pytest.raises(StoreError, match=r"newer version of harn-temporal.*9999"):
        await sqlite_lab.open()


async def test_projections_of_another_version_are_made_anew(sqlite_lab, monkeypatch):
    one = await sqlite_lab.open()
    headers = {WORKFLOW_ID: "w", OUTCOME: "failed"}
    await one.append([Append("trigger.outbox", "ended", {}, headers)])
    monkeypatch.setattr(InboxProjection, "version", 1000)
    two = await sqlite_lab.open()
    assert (await two.query(lambda r: r.inbox.outcome("w"))).event_id == 1
    assert two._writer.generation == 2
    monkeypatch.undo()
    for use in (one.append([note()]), one.query(lambda r: r.inbox.outcome("w"))):
        with pytest.raises(StoreUpgradedError, match="a newer version of harn-temporal has"):
            await use
    with pytest.raises(StoreUpgradedError, match="a newer version of harn-temporal has"):
        await sqlite_lab.open()


async def test_what_a_rebuild_left_that_was_killed_is_swept_by_the_next(sqlite_lab):
    from harn_temporal.eventlog.rebuild import Rebuild

    log = await sqlite_lab.open()
    await log._in_writer(Rebuild(log._writer).begin)
    await log.append([note()])
    await log.rebuild()
    with sqlite_lab.connection() as connection:
        tables = connection.execute(
            "SELECT name FROM sqlite_master WHERE name GLOB 'harn_*_g[0-9]*'"
        )
        assert {name.split("_")[2] for (name,) in tables} == {"g3"}


async def test_a_full_disk_is_said_and_passes(sqlite_lab):
    log = await sqlite_lab.open()
    await log.append([note("before")])
    connection = log._writer._connection
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    connection.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(StoreUnavailableError, match=r"events\.sqlite.*disk is full") as caught:
        await log.append([note("x" * 100_000)])
    assert isinstance(caught.value.__cause__, sqlite3.OperationalError)
    connection.execute("PRAGMA max_page_count = 1000000")
    await log.append([note("after")])
    assert [record.payload["text"] for record in await log.read("notes")] == ["before", "after"]
    assert (await verify(log, "notes")).intact


async def test_a_lock_that_does_not_pass_is_said(sqlite_lab, monkeypatch):
    monkeypatch.setattr(sqlite, "BUSY_TIMEOUT_MS", 10)
    monkeypatch.setattr(sqlite, "PATIENCE_SECONDS", 0.0)
    log = await sqlite_lab.open()
    with sqlite_lab.connection():
        with pytest.raises(StoreUnavailableError, match="kept the EventLog locked"):
            await log.append([note("lost")])
        assert await log.read("notes") == []  # readers do not wait for writers
    await log.append([note("kept")])
    assert len(await log.read("notes")) == 1


async def test_a_lock_that_passes_is_waited_for(sqlite_lab, monkeypatch):
    monkeypatch.setattr(sqlite, "BUSY_TIMEOUT_MS", 1)
    log = await sqlite_lab.open()
    tried = asyncio.Event()
    loop = asyncio.get_running_loop()

    def seen_busy(error):
        loop.call_soon_threadsafe(tried.set)
        return is_busy(error)

    is_busy = sqlite.is_busy
    monkeypatch.setattr(sqlite, "is_busy", seen_busy)
    with sqlite_lab.connection():
        appending = asyncio.create_task(log.append([note()]))
        await asyncio.wait_for(tried.wait(), BOUND)
    assert (await appending).fresh


@pytest.mark.parametrize(
    ("code", "kind", "words"),
    [
        (sqlite3.SQLITE_BUSY, StoreUnavailableError, "busy"),
        (sqlite3.SQLITE_BUSY_SNAPSHOT, StoreUnavailableError, "busy"),
        (sqlite3.SQLITE_IOERR_FSYNC, StoreUnavailableError, "is it full?"),
        (sqlite3.SQLITE_CANTOPEN, StoreUnavailableError, "cannot be opened"),
        (sqlite3.SQLITE_READONLY, StoreError, "read-only"),
        (sqlite3.SQLITE_CORRUPT, StoreError, "damaged"),
        (sqlite3.SQLITE_ERROR, StoreError, "the words of SQLite"),
    ],
)
def test_what_sqlite_says_is_told_apart_by_code(code, kind, words):
    error = sqlite3.OperationalError("the words of SQLite")
    error.sqlite_errorcode = code
    with pytest.raises(kind, match=f"EventLog somewhere.*{words}") as caught, mapped("somewhere"):
        raise error
    assert type(caught.value) is kind
    assert caught.value.__cause__ is error


EXITS = """
import asyncio, sys
from pathlib import Path
from harn_temporal.eventlog import StoreSettings, open_event_log
from harn_temporal.eventlog.log import Append

async def main(path):
    log = await open_event_log(StoreSettings("sqlite", Path(path)))
    await log.append([Append("notes", "noted", {})])
    asyncio.create_task(log.changed(1000, 1000))
    await asyncio.sleep(0)
    return log

kept = asyncio.run(main(sys.argv[1]))
"""


async def test_a_program_that_forgets_to_close_ends_all_the_same(sqlite_lab):
    command = [sys.executable, "-c", EXITS, str(sqlite_lab.settings.path)]
    ended = await asyncio.to_thread(
        subprocess.run, command, timeout=BOUND, check=False, capture_output=True
    )
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert len(await (await sqlite_lab.open()).read("notes")) == 1


async def test_the_highest_id_leaves_no_next_one_until_its_record_is_removed(sqlite_lab):
    log = await sqlite_lab.open()
    await log.append([Append("trigger.outbox", "noted", {})])
    with sqlite_lab.connection() as connection:
        row = ("trigger.outbox", 2**63 - 1, "noted", "{}", "{}", 5)
        connection.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?)", row)

    with pytest.raises(StoreError, match=r"topic trigger\.outbox .*operations\.md"):
        await log.append([Append("trigger.outbox", "noted", {})])
    assert (await log.append([Append("trigger.inbox", "noted", {})])).records[0].event_id == 1

    page = Path(__file__).parents[2] / "docs/operations.md"
    remedy = page.read_text().split('events.sqlite "\n')[1].split('"\nharn-temporal log rebuild')[0]
    await log.close()
    with sqlite_lab.connection() as connection:
        for statement in filter(str.strip, remedy.split(";")):
            connection.execute(statement)
    log = await sqlite_lab.open()
    await log.rebuild()
    written = await log.append([Append("trigger.outbox", "noted", {})])
    assert written.records[0].event_id == 2
    assert (await verify(log, "trigger.outbox")).intact

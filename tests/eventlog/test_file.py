"""What holds for the lines of the file backend: their form, and what a crash leaves of them."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from harn_temporal.errors import StoreError, StoreUnavailableError
from harn_temporal.eventlog import json_lines, projections
from harn_temporal.eventlog.log import Append
from harn_temporal.headers import OUTCOME, WORKFLOW_ID
from harn_temporal.inspection.chain import verify

BOUND = 60

KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
from harn_temporal.eventlog import StoreSettings, json_lines, open_event_log
from harn_temporal.eventlog.file_backend import FileSession
from harn_temporal.eventlog.log import Append

def die():
    os.kill(os.getpid(), signal.SIGKILL)

def die_before_writing(path, offset, lines):
    die()

def die_while_writing(path, offset, lines):
    write_at(path, offset, lines[: len(lines) * 2 // 3])
    die()

def die_before_forgetting(self, name, **parameters):
    if name == "unwritten.clear":
        die()
    return run(self, name, **parameters)

async def main(path, when):
    log = await open_event_log(StoreSettings("file", Path(path)))
    if when == "forgetting":
        FileSession.run = die_before_forgetting
    else:
        json_lines.write_at = {"before": die_before_writing, "while": die_while_writing}[when]
    headers = {"harn_temporal.workflow_id": "killed", "harn_temporal.outcome": "failed"}
    def work(transaction):
        transaction.ack("notes", "reader", 5)
        transaction.append(
            [
                Append("notes", "noted", {"text": "one"}),
                Append("notes", "noted", {"text": "two"}),
                Append("trigger.outbox", "ended", {}, headers),
            ],
            "k",
        )
    await log.transact(work)

run, write_at = FileSession.run, json_lines.write_at
asyncio.run(main(*sys.argv[1:]))
"""


def note(text="hello"):
    return Append("notes", "noted", {"text": text})


async def killed(lab, when: str) -> None:
    command = [sys.executable, "-c", KILLED, str(lab.settings.path), when]
    ended = await asyncio.to_thread(
        subprocess.run, command, timeout=BOUND, check=False, capture_output=True
    )
    assert (ended.returncode, ended.stderr) == (-signal.SIGKILL, b"")


async def texts(log) -> list[str]:
    return [record.payload["text"] for record in await log.read("notes")]


async def test_a_line_and_a_cursor_have_the_form_that_harn_reads(file_lab):
    log = await file_lab.open()
    await log.append([Append("t.x", "kind é", {"b": 1e16, "a": "é\n"}, {"h": "v"})])
    await log.transact(lambda transaction: transaction.ack("t.x", "reader/1", 1))
    raw = (file_lab.directory / "events" / "topics" / "t.x.jsonl").read_bytes()
    assert raw.startswith(
        '{"id":1,"event":{"kind":"kind é","payload":{"a":"é\\n","b":1e+16}'.encode()
    )
    assert raw.endswith(b',"occurred_at_ms":1700000000000}}\n')
    assert raw.count(b"\n") == 1
    line = json.loads(raw)
    assert list(line) == ["id", "event"]
    assert list(line["event"]) == ["kind", "payload", "headers", "occurred_at_ms"]
    assert line["event"]["headers"]["h"] == "v"
    cursor = file_lab.directory / "events" / "consumers" / "t.x__reader_1.json"
    assert json.loads(cursor.read_bytes()) == {
        "topic": "t.x",
        "consumer_id": "reader/1",
        "cursor": 1,
        "updated_at_ms": 1_700_000_000_000,
    }


async def test_a_cursor_that_harn_moved_counts(file_lab):
    log = await file_lab.open()
    await log.transact(lambda transaction: transaction.ack("notes", "reader", 3))
    path = file_lab.directory / "events" / "consumers" / "notes__reader.json"
    moved = json.loads(path.read_bytes()) | {"cursor": 8}
    path.write_text(json.dumps(moved, indent=2))
    assert await log.query(lambda r: r.cursor("notes", "reader")) == 8
    await log.transact(lambda transaction: transaction.ack("notes", "reader", 5))
    assert json.loads(path.read_bytes())["cursor"] == 8
    path.write_text("torn {")
    assert await log.query(lambda r: r.cursor("notes", "reader")) == 8


@pytest.mark.parametrize("when", ["before", "while", "forgetting"])
async def test_a_process_killed_after_its_commit_leaves_its_records(file_lab, when):
    await (await file_lab.open()).append([note("zero")])
    await killed(file_lab, when)
    log = await file_lab.open()
    assert await texts(log) == ["zero", "one", "two"]
    assert (await log.query(lambda r: r.inbox.outcome("killed"))).event_id == 1
    assert await log.query(lambda r: r.cursor("notes", "reader")) == 5
    assert not (await log.append([note("lost")], "k")).fresh
    await log.append([note("three")])
    assert [json.loads(line)["id"] for line in file_lab.lines("notes")] == [1, 2, 3, 4]
    assert (await verify(log, "notes")).intact


async def test_an_open_store_takes_over_what_a_killed_process_left(file_lab):
    log = await file_lab.open()
    await killed(file_lab, "before")
    assert await texts(log) == ["one", "two"]
    assert len(file_lab.lines("trigger.outbox")) == 1


async def test_lines_of_others_behind_those_of_a_killed_process_stay(file_lab):
    await file_lab.open()
    await killed(file_lab, "forgetting")
    await file_lab.foreign("notes", "noted", {"text": "theirs"})
    log = await file_lab.open()
    assert await texts(log) == ["one", "two", "theirs"]


async def test_lines_of_others_in_the_place_of_unwritten_ones_win(file_lab):
    """The killed process never said that its records were appended."""
    await (await file_lab.open()).append([note("zero")])
    await killed(file_lab, "before")
    await file_lab.foreign("notes", "noted", {"text": "theirs"})
    for log in file_lab._opened:
        await log.close()
    log = await file_lab.open()
    assert await texts(log) == ["zero", "theirs"]
    assert (await log.append([note("again")], "k")).fresh
    assert await log.query(lambda r: r.inbox.outcome("killed")) is None
    assert [head.last_id for head in await log.topics()] == [3]


async def test_a_torn_last_line_is_skipped_and_cut(file_lab):
    log = await file_lab.open()
    await log.append([note("one")])
    with file_lab.path("notes").open("ab") as file:
        file.write(b'{"id": 2, "event": {"kind": "noted", "payl' + b"x" * 2000)
    assert await texts(log) == ["one"]
    assert await texts(await file_lab.open()) == ["one"]
    assert (await log.append([note("two")])).records[0].event_id == 2
    assert await texts(log) == ["one", "two"]
    assert [json.loads(line)["id"] for line in file_lab.lines("notes")] == [1, 2]


async def test_a_torn_line_that_its_writer_completes_is_read(file_lab):
    log = await file_lab.open()
    await file_lab.foreign("notes", "noted", {"text": "one"})
    whole = file_lab.path("notes").read_bytes()
    file_lab.path("notes").write_bytes(whole[:20])
    assert await texts(log) == []
    file_lab.path("notes").write_bytes(whole)
    assert await texts(log) == ["one"]


async def test_a_last_line_without_its_newline_counts(file_lab):
    log = await file_lab.open()
    await file_lab.foreign("notes", "noted", {"text": "one"})
    path = file_lab.path("notes")
    path.write_bytes(path.read_bytes().rstrip(b"\n"))
    assert await texts(log) == ["one"]
    await log.append([note("two"), note("three")])
    assert await texts(log) == ["one", "two", "three"]
    assert [json.loads(line)["id"] for line in file_lab.lines("notes")] == [1, 2, 3]


async def test_what_is_no_record_is_passed_over(file_lab):
    log = await file_lab.open()
    path = file_lab.path("notes")
    path.parent.mkdir(exist_ok=True)
    event = {"kind": 5, "payload": {"text": "odd"}, "headers": [1], "occurred_at_ms": "late"}
    lines = [
        b"not json",
        b"",
        b"[]",
        b'{"id": true, "event": {}}',
        b'{"id": 0, "event": {}}',
        b'{"id": %d, "event": {}}' % 2**63,
        b"\xff",
        json.dumps({"id": 1, "event": event}).encode(),
        json.dumps({"id": 1, "event": event | {"payload": "a second first"}}).encode(),
    ]
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    (path.parent / "no topic.jsonl").write_text("else")
    (record,) = await log.read("notes")
    assert (record.kind, record.payload, record.headers, record.occurred_at_ms) == (
        "",
        {"text": "odd"},
        {},
        0,
    )
    assert (await log.append([note("ours")])).records[0].event_id == 2
    assert [head.topic for head in await log.topics()] == ["notes"]


async def test_many_lines_of_others_are_taken_in_bounded_transactions(file_lab, monkeypatch):
    monkeypatch.setattr(projections, "BATCH_RECORDS", 50)
    log = await file_lab.open()
    for number in range(180):
        headers = {WORKFLOW_ID: f"w{number}", OUTCOME: "failed"}
        topic = f"tenant.t{number % 3}.trigger.outbox"
        await file_lab.foreign(topic, "ended", {}, headers)
    taken: list[int] = [0]

    def follow(statement: str) -> None:
        if statement.startswith("COMMIT"):
            taken.append(0)
        elif statement.startswith("INSERT INTO line_offsets"):
            taken[-1] += 1

    log._writer._connection.set_trace_callback(follow)
    found = await log.query(lambda r: [r.inbox.outcome(f"w{n}").event_id for n in range(180)])
    log._writer._connection.set_trace_callback(None)
    assert found == [1 + number // 3 for number in range(180)]
    assert sum(taken) == 180
    assert max(taken) <= 50


async def test_a_side_file_that_is_lost_is_made_anew_from_the_lines(file_lab):
    log = await file_lab.open()
    headers = {WORKFLOW_ID: "w", OUTCOME: "failed"}
    await log.append([note("one"), Append("trigger.outbox", "ended", {}, headers)], "k")
    await log.append([note("two")])
    await log.transact(lambda transaction: transaction.ack("notes", "reader", 2))
    await log.close()
    for file in file_lab.directory.rglob("projections.sqlite*"):
        file.unlink()
    again = await file_lab.open()
    assert again.store_id == log.store_id
    assert (await again.query(lambda r: r.inbox.outcome("w"))).event_id == 1
    assert await again.query(lambda r: r.cursor("notes", "reader")) == 2
    repeated = await again.append([note("again")], "k")
    assert not repeated.fresh
    assert [record.topic for record in repeated.records] == ["notes", "trigger.outbox"]
    assert (await again.append([note("three")])).records[0].event_id == 3
    assert (await verify(again, "notes")).intact


async def test_a_side_file_that_is_none_is_named_and_not_the_lines(file_lab):
    log = await file_lab.open()
    await log.append([Append("trigger.outbox", "noted", {})])
    await log.close()
    (side_file,) = file_lab.directory.rglob("projections.sqlite")
    for file in side_file.parent.glob("projections.sqlite*"):
        file.unlink()
    side_file.write_bytes(b"not a database" * 400)

    with pytest.raises(StoreError, match="is not a SQLite database") as refused:
        await file_lab.open()

    assert str(side_file) in str(refused.value)
    side_file.unlink()
    assert len(await (await file_lab.open()).read("trigger.outbox")) == 1


async def test_lines_that_were_taken_away_are_said_and_then_forgotten(file_lab):
    log = await file_lab.open()
    await log.append([note("one"), note("two")], "k")
    path = file_lab.path("notes")
    path.write_bytes(path.read_bytes().splitlines(keepends=True)[0])
    for use in (log.append([note("x")]), log.read("notes")):
        with pytest.raises(StoreError, match=r"changed lines of .*notes\.jsonl.*open the EventLog"):
            await use
    await log.close()
    again = await file_lab.open()
    assert again.store_id == log.store_id
    assert await texts(again) == ["one"]
    assert (await again.append([note("three")])).records[0].event_id == 2


async def test_lines_that_cannot_be_written_come_with_the_next_use(file_lab, monkeypatch):
    log = await file_lab.open()

    def full(path: Path, offset: int, lines: bytes) -> bool:
        raise OSError(28, "No space left on device", str(path))

    with monkeypatch.context() as patched:
        patched.setattr(json_lines, "write_at", full)
        with pytest.raises(StoreUnavailableError, match="events cannot be used: No space left"):
            await log.append([note("one")], "k")
    assert not (await log.append([note("one")], "k")).fresh
    assert await texts(log) == ["one"]
    assert len(file_lab.lines("notes")) == 1


def test_a_file_without_permission_is_named(tmp_path):
    with pytest.raises(StoreError, match="Permission denied: notes"), json_lines.mapped(tmp_path):
        raise PermissionError(13, "Permission denied", "notes")

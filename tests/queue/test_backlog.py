"""A projection that is behind catches up in short transactions."""

from __future__ import annotations

import json
import sqlite3
import time
from contextlib import closing

import pytest

from harn_temporal.queue.operations import WorkerQueue
from harn_temporal.queue.reading import figures
from harn_temporal.scheduler import Policy

ALLOWED_SECONDS = 0.1


def flood(path, new_job, count: int) -> None:
    """What Harn appends while nothing of ours runs."""
    job = new_job(1).model_dump(exclude={"available_at_ms"})
    rows = []
    for number in range(1, count + 1):
        job["event"] = {**job["event"], "tenant_id": f"t{number % 100}"}
        raw = json.dumps(job).encode()
        rows.append(("worker.triage", number, "trigger_dispatch", raw, "{}", number))
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executemany("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?)", rows)
        connection.execute("INSERT INTO topic_heads VALUES ('worker.triage', ?)", (count,))


async def check_catching_up(bench, new_job, count: int) -> None:
    log = await bench.open()
    flood(bench.settings.path, new_job, count)
    writer, lasted, began = log._writer, [], [0.0]
    begin, commit = writer.begin, writer.commit

    def timed_begin(*, write: bool) -> None:
        begin(write=write)
        began[0] = time.thread_time()

    def timed_commit() -> None:
        commit()
        lasted.append(time.thread_time() - began[0])

    writer.begin, writer.commit = timed_begin, timed_commit
    claims = (await WorkerQueue(log, "triage", Policy()).claim("c", 3)).claims
    assert [claim.job_event_id for claim in claims] == [1, 2, 3]
    assert len(lasted) >= count // 500
    assert max(lasted) < ALLOWED_SECONDS
    (shown,) = await log.query(figures)
    assert (shown["ready"], shown["in_flight"]) == (count - 3, 3)


async def test_a_backlog_is_folded_in_short_transactions(sqlite_bench, new_job):
    await check_catching_up(sqlite_bench, new_job, 4000)


@pytest.mark.soak
async def test_a_long_backlog_is_folded_in_short_transactions(sqlite_bench, new_job):
    await check_catching_up(sqlite_bench, new_job, 100_000)


async def test_a_flood_of_expired_claims_is_taken_back_in_short_transactions(sqlite_bench, new_job):
    log = await sqlite_bench.open()
    flood(sqlite_bench.settings.path, new_job, 1500)
    queue = WorkerQueue(log, "triage", Policy())
    for _ in range(6):
        await queue.claim("c", 250, ttl_ms=1000)
    assert (await log.query(figures))[0]["in_flight"] == 1500
    sqlite_bench.clock.now_ms += 1000
    claims = (await queue.claim("d", 2)).claims
    assert [claim.job_event_id for claim in claims] == [1, 2]
    (shown,) = await log.query(figures)
    assert (shown["ready"], shown["in_flight"]) == (1498, 2)

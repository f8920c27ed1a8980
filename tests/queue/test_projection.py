"""The projection gives what folding the records gives, whatever the order and whoever wrote."""

from __future__ import annotations

import asyncio
import json
import random
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from harn_temporal.eventlog import StoreSettings, open_event_log
from harn_temporal.eventlog.log import Append
from harn_temporal.queue.claiming import claim
from harn_temporal.queue.models import ClaimOrder
from harn_temporal.queue.operations import WorkerQueue, enqueue_many
from harn_temporal.queue.reading import figures, list_jobs, scheduler_figures
from harn_temporal.scheduler import Candidate, Policy, select
from harn_temporal.scheduler import selection as selecting
from harn_temporal.scheduler.in_memory import MemoryJobs

START_MS = 1_700_000_000_000
JOBS, CLAIMS = "worker.q", "worker.q.claims"


# The fold, as the specification words it


@dataclass
class Folded:
    tenant: str | None = None
    priority: str = "normal"
    at_ms: int = 0
    there: bool = False
    seen: set[str] = field(default_factory=set)
    active: dict[str, Any] | None = None
    acked: bool = False
    purged: bool = False
    taken: int = 0

    def state(self, now_ms: int) -> str:
        if self.acked or self.purged:
            return "acked" if self.acked else "purged"
        held = self.active is not None and self.active["expires_at_ms"] > now_ms
        return "claimed" if held else "ready"


def folded(records) -> dict[int, Folded]:  # noqa: PLR0912 - a branch a rule
    jobs: dict[int, Folded] = {}
    job_id = 0
    for record in records:
        if record.topic == JOBS:
            job_id += 1
            job = jobs.setdefault(job_id, Folded())
            job.there = True
            job.tenant = record.payload["event"]["tenant_id"]
            job.priority = record.payload["priority"]
            job.at_ms = record.occurred_at_ms or 0
    for record in records:
        if record.topic != CLAIMS:
            continue
        payload = record.payload
        job = jobs.setdefault(payload["job_event_id"], Folded())
        claim_id = payload.get("claim_id")
        active_id = job.active["claim_id"] if job.active else None
        if record.kind == "job_claimed":
            if job.acked or job.purged:
                continue
            job.seen.add(claim_id)
            if job.active is None or job.active["expires_at_ms"] <= payload["claimed_at_ms"]:
                job.active = dict(payload)
                job.taken += 1
        elif record.kind == "claim_renewed":
            if job.active is not None and active_id == claim_id:
                job.active["expires_at_ms"] = payload["expires_at_ms"]
        elif record.kind == "job_released":
            if active_id == claim_id:
                job.active = None
        elif record.kind == "job_acked":
            job.acked = job.acked or claim_id == "" or claim_id in job.seen
        elif record.kind == "job_purged":
            job.purged = job.purged or not job.acked
    return {job_id: job for job_id, job in sorted(jobs.items()) if job.there}


def job_record(tenant: str | None, priority: str, at: int) -> Append:
    return Append(
        JOBS,
        "trigger_dispatch",
        {
            "queue": "q",
            "trigger_id": "t",
            "binding_key": "t@v1",
            "binding_version": 1,
            "event": {"id": "e", "tenant_id": tenant},
            "replay_of_event_id": None,
            "priority": priority,
        },
        occurred_at_ms=START_MS + at,
    )


def claim_record(kind: str, job_id: int, claim_id: str, at: int, ttl: int) -> Append:
    names = {
        "job_claimed": ("claimed_at_ms", True),
        "claim_renewed": ("renewed_at_ms", True),
        "job_released": ("released_at_ms", False),
        "job_acked": ("acked_at_ms", False),
        "job_purged": ("purged_at_ms", False),
    }
    name, expires = names[kind]
    payload: dict[str, Any] = {"job_event_id": job_id, name: START_MS + at}
    if kind == "job_purged":
        payload["purged_by"] = "ops"
    else:
        payload |= {"claim_id": claim_id, "consumer_id": "c"}
    if expires:
        payload["expires_at_ms"] = START_MS + at + ttl
    return Append(CLAIMS, kind, payload)


job_records = st.builds(
    job_record,
    st.sampled_from([None, "a", "b"]),
    st.sampled_from(["high", "normal", "low"]),
    st.integers(0, 60),
)
claim_records = st.builds(
    claim_record,
    st.sampled_from(
        ["job_claimed", "job_claimed", "claim_renewed", "job_released", "job_acked", "job_purged"]
    ),
    st.integers(1, 5),
    st.sampled_from(["x", "y", "z"]),
    st.integers(0, 60),
    st.integers(0, 60),
)
acks_of_nobody = st.builds(
    claim_record, st.just("job_acked"), st.integers(1, 5), st.just(""), st.just(1), st.just(1)
)
logs = st.tuples(
    st.lists(job_records, max_size=5),
    st.lists(claim_records | claim_records | acks_of_nobody, max_size=25),
)


class Stepping:
    def __init__(self) -> None:
        self.now_ms = START_MS

    def __call__(self) -> int:
        return self.now_ms


def mixed(jobs: list[Append], claims: list[Append], seed: int) -> list[Append]:
    """The two topics in some order; within each, the records keep theirs."""
    left, right = list(jobs), list(claims)
    choose = random.Random(seed)
    found = []
    while left or right:
        source = left if left and (not right or choose.random() < 0.5) else right
        found.append(source.pop(0))
    return found


def expected(jobs: dict[int, Folded], now_ms: int) -> list[tuple[Any, ...]]:
    return [
        (job_id, job.state(now_ms), job.tenant, job.priority, job.at_ms, job.taken)
        for job_id, job in jobs.items()
    ]


def found_in(reader) -> list[tuple[Any, ...]]:
    return [
        (j.job_event_id, j.state, j.tenant_id, j.priority, j.enqueued_at_ms, j.deliveries)
        for j in list_jobs(reader, "q")
    ]


def counted(jobs: dict[int, Folded], now_ms: int) -> dict[str, Any]:
    states = [job.state(now_ms) for job in jobs.values()]
    ready = [now_ms - job.at_ms for job in jobs.values() if job.state(now_ms) == "ready"]
    return {
        "ready": states.count("ready"),
        "in_flight": states.count("claimed"),
        "acked": states.count("acked"),
        "purged": states.count("purged"),
        "oldest_unclaimed_age_ms": max(0, *ready) if ready else None,
    }


ACKED_UNSEEN = (
    [job_record(None, "normal", 0), job_record(None, "normal", 0)],
    [claim_record("job_acked", 1, "x", 0, 0), claim_record("job_acked", 2, "", 0, 0)],
)


@settings(deadline=None)
@given(logs, st.integers(0, 1000), st.integers(30, 130))
@example(ACKED_UNSEEN, 0, 30)
def test_the_projection_is_the_fold(parts, seed, at):
    jobs, claims = parts
    asyncio.run(check_fold(jobs, mixed(jobs, claims, seed), START_MS + at))


async def check_fold(jobs: list[Append], records: list[Append], now_ms: int) -> None:
    clock = Stepping()
    log = await open_event_log(StoreSettings("memory"), clock)
    try:
        half = len(records) // 2
        await log.append(records[:half])
        clock.now_ms = START_MS + 30
        # A consumer looks for ready jobs and takes none: jobs move to their lanes meanwhile.
        order = ClaimOrder(queue="q", consumer_id="c", limit=0)
        await log.transact(lambda tx: claim(tx, order, Policy()))
        await log.append(records[half:])
        clock.now_ms = now_ms
        want = folded(records)
        for again in range(3):
            assert await log.query(found_in) == expected(want, now_ms)
            shown = await log.query(figures)
            assert bool(shown) == bool(jobs)
            for each in shown:
                assert {name: each[name] for name in counted(want, now_ms)} == counted(want, now_ms)
            if again == 0:
                await log.transact(lambda tx: claim(tx, order, Policy()))
            elif again == 1:
                await log.rebuild()
    finally:
        await log.close()


# Indexed selection and selection over a list agree

POLICIES = st.builds(
    Policy,
    strategy=st.sampled_from(["fifo", "drr"]),
    fairness_key=st.sampled_from(["tenant", "trigger-id", "tenant-and-binding"]),
    quantum=st.integers(1, 2),
    starvation_age_ms=st.sampled_from([0, 40, 300_000]),
    max_concurrent_per_key=st.integers(0, 3),
    default_weight=st.integers(1, 2),
    weights=st.dictionaries(st.sampled_from(["a", "b", "t1", "a|t1@v1"]), st.integers(1, 3)),
)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["enqueue", "claim", "claim", "ack", "release", "wait", "promote"]),
        st.integers(0, 7),
        st.sampled_from([None, "a", "b", "c"]),
        st.sampled_from(["high", "normal", "low"]),
    ),
    max_size=40,
)


@settings(deadline=None, max_examples=200)
@given(POLICIES, STEPS, st.sets(st.sampled_from(["a", "t1"]), max_size=1), st.integers(1, 4))
def test_the_index_chooses_what_a_list_would(policy, steps, excluded, granted_at_once):
    with patch.object(selecting, "GRANTED_AT_ONCE", granted_at_once):
        asyncio.run(check_choices(policy, steps, excluded))


async def check_choices(policy, steps, excluded) -> None:  # noqa: PLR0912 - a line a step
    """The same things happen to a store and to a list; both choose the same jobs, always."""
    clock = Stepping()
    log = await open_event_log(StoreSettings("memory"), clock)
    listed, claimed, jobs = MemoryJobs(), {}, 0
    queue = WorkerQueue(log, "q", policy)
    try:
        for what, number, tenant, priority in steps:
            if what == "enqueue":
                for n in range(number):
                    record = job_record(tenant, priority, clock.now_ms - START_MS)
                    trigger = f"t{n % 2}"
                    record.payload.update(trigger_id=trigger, binding_key=f"{trigger}@v1")
                    await log.append([record])
                    jobs += 1
                    key = policy.key_of(tenant, trigger, f"{trigger}@v1")
                    rank = ["high", "normal", "low"].index(priority)
                    listed.ready.append(Candidate(jobs, key, rank, clock.now_ms, clock.now_ms))
            elif what == "claim":
                claims = await queue.claim("c", number, ttl_ms=10**9, excluded_keys=excluded)
                want = []
                while len(want) < number:
                    selection = select(listed, policy, clock.now_ms, excluded)
                    if selection is None:
                        break
                    listed.take(selection)
                    want.append(selection)
                assert [
                    (c.job_event_id, c.scheduling.decision, c.scheduling.fairness_key)
                    for c in claims.claims
                ] == [(s.candidate.job_id, s.decision, s.candidate.key) for s in want]
                for made, selection in zip(claims.claims, want, strict=True):
                    claimed[made.job_event_id] = made, selection.candidate
            elif what in ("ack", "release") and claimed:
                job_id = sorted(claimed)[number % len(claimed)]
                made, candidate = claimed.pop(job_id)
                kind = "job_acked" if what == "ack" else "job_released"
                await log.append([claim_record(kind, job_id, made.claim_id, 0, 0)])
                listed.claims[candidate.key] -= 1
                if what == "release":
                    listed.ready.append(candidate)
            elif what in ("wait", "promote"):
                clock.now_ms += number * 10 if what == "wait" else number * 300_000
        rounds = await log.query(lambda r: r.queues.round("q", policy.fairness_key))
        if policy.strategy == "drr":
            assert (rounds.rounds, rounds.starvations, rounds.last_key) == (
                listed.rounds,
                listed.starvation_promotions,
                listed.last_key,
            )
            for each in await log.query(lambda r: r.queues.keys("q", policy.fairness_key)):
                assert each.credit == listed.credits[each.key]
                assert each.in_flight == listed.claims[each.key]
    finally:
        await log.close()


# Records of others


async def test_jobs_and_claims_of_harn_count(sqlite_bench, new_job):
    log = await sqlite_bench.open()
    queue = WorkerQueue(log, "q", Policy())
    theirs = job_record("acme", "high", 0)
    sqlite_bench.foreign(JOBS, "trigger_dispatch", theirs.payload)
    await enqueue_many(log, [new_job(1, queue="q")])
    held = claim_record("job_claimed", 2, "h", 0, 5000)
    sqlite_bench.foreign(CLAIMS, "job_claimed", held.payload)
    claims = (await queue.claim("c", 9)).claims
    assert [(c.job_event_id, c.scheduling.fairness_key) for c in claims] == [(1, "acme")]
    acked = claim_record("job_acked", 2, "h", 0, 0)
    sqlite_bench.foreign(CLAIMS, "job_acked", acked.payload)
    assert [each[:2] for each in await log.query(found_in)] == [(1, "claimed"), (2, "acked")]


async def test_a_job_without_priority_is_normal(sqlite_bench):
    log = await sqlite_bench.open()
    record = job_record(None, "high", 0)
    del record.payload["priority"]
    sqlite_bench.foreign(JOBS, "trigger_dispatch", record.payload)
    assert (await log.query(found_in))[0][3] == "normal"


async def test_what_makes_no_sense_is_reported_and_stops_nothing(sqlite_bench, new_job):
    log = await sqlite_bench.open()
    good = job_record(None, "normal", 0).payload
    claimed = claim_record("job_claimed", 1, "x", 0, 5000).payload
    bad = [
        (JOBS, "trigger_dispatch", json.dumps(good).encode()[:40], "JSON"),
        (JOBS, "trigger_dispatch_v2", good, "trigger_dispatch_v2"),
        (JOBS, "trigger_dispatch", {**good, "event": 7}, "event"),
        (JOBS, "trigger_dispatch", {**good, "priority": None}, "priority"),
        (JOBS, "trigger_dispatch", {**good, "event": {"id": "e", "tenant_id": 5}}, "tenant_id"),
        (JOBS, "trigger_dispatch", {**good, "trigger_id": ""}, "trigger_id"),
        (CLAIMS, "job_claimed", b'{"job_event_id": 1, "cl', "JSON"),
        (CLAIMS, "job_stolen", claimed, "job_stolen"),
        (CLAIMS, "job_claimed", {**claimed, "job_event_id": "1"}, "job_event_id"),
        (CLAIMS, "job_claimed", {**claimed, "claim_id": ""}, "claim_id"),
        (CLAIMS, "job_acked", [], "object"),
        ("worker.q.responses", "job_reply", {}, "job_reply"),
        ("worker.queues", "queue_seen", {"name": "q"}, "queue"),
    ]
    expected = []
    for topic, kind, payload, reason in bad:
        expected.append((topic, sqlite_bench.foreign(topic, kind, payload), reason))
    await enqueue_many(log, [new_job(1, queue="q")])
    for _ in range(2):
        skipped = await log.query(lambda reader: reader.skipped())
        assert {(s.topic, s.event_id, s.projection) for s in skipped} == {
            (topic, event_id, "queues") for topic, event_id, _ in expected
        }
        reasons = {(s.topic, s.event_id): s.reason for s in skipped}
        for topic, event_id, reason in expected:
            assert reason in reasons[topic, event_id]
        assert [each[:2] for each in await log.query(found_in)] == [(7, "ready")]
        await log.rebuild()
    (claim_made,) = (await WorkerQueue(log, "q", Policy()).claim("c", 9)).claims
    assert claim_made.job_event_id == 7


@pytest.mark.parametrize("strategy", ["fifo", "drr"])
async def test_a_rebuild_shows_the_same(bench, new_job, strategy):
    log = await bench.open()
    policy = Policy(strategy=strategy, max_concurrent_per_key=2)
    queue = WorkerQueue(log, "triage", policy)
    jobs = [new_job(n, "abc"[n % 3], priority=("high", "normal", "low")[n % 3]) for n in range(9)]
    late = new_job(9, "a", available_at_ms=bench.clock.now_ms + 500)
    await enqueue_many(log, [*jobs, late])
    first = (await queue.claim("c", 3, ttl_ms=400)).claims
    await queue.release("c", [first[0].ref])
    bench.clock.now_ms += 450
    await queue.claim("c", 1)
    bench.clock.now_ms += 100

    def shown(reader):
        return figures(reader), scheduler_figures(reader, policy), list_jobs(reader, "triage")

    before = await log.query(shown)
    assert before[0][0]["in_flight"] == 1
    assert before[0][0]["delayed"] == 0
    await log.rebuild()
    assert await log.query(shown) == before
    # Two of each key may be in flight, of three keys, and one is.
    assert len((await queue.claim("d", 20)).claims) == 5

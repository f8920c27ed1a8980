"""Claims on every backend: TTL to the millisecond, fencing, releasing, purging, pausing."""

from __future__ import annotations

import pytest

from harn_temporal.contracts import DispatchOutcome
from harn_temporal.errors import UsageError
from harn_temporal.queue.models import Claim, Settlement
from harn_temporal.queue.operations import WorkerQueue, enqueue_many
from harn_temporal.queue.reading import figures, list_jobs, load_job, scheduler_figures
from harn_temporal.scheduler import Policy, selection

REF = Claim.ref.fget


def settled(claim, *, ack=True, error=None, outcome=None):
    return Settlement(
        job_event_id=claim.job_event_id,
        claim_id=claim.claim_id,
        outcome=outcome,
        error=error,
        ack=ack,
    )


def outcome(status="succeeded"):
    return DispatchOutcome(
        trigger_id="review",
        binding_key="review@v1",
        event_id="trigger_evt_1",
        attempt_count=1,
        status=status,
        handler_kind="local",
        target_uri="handlers::on_task",
    )


async def states(log):
    return {j.job_event_id: j.state for j in await log.query(lambda r: list_jobs(r, "triage"))}


async def shown(log, queue="triage"):
    return next(q for q in await log.query(figures) if q["queue"] == queue)


# Enqueuing


async def test_a_job_is_a_record_and_a_receipt(log, new_job, clock):
    (receipt,) = await enqueue_many(log, [new_job(1, "acme", priority="high")])
    assert receipt.model_dump() == {
        "queue": "triage",
        "job_event_id": 1,
        "response_topic": "worker.triage.responses",
    }
    (record,) = await log.read("worker.triage")
    assert record.kind == "trigger_dispatch"
    assert record.occurred_at_ms == clock.now_ms
    assert record.payload == {
        "queue": "triage",
        "trigger_id": "review",
        "binding_key": "review@v1",
        "binding_version": 1,
        "event": new_job(1, "acme").event,
        "replay_of_event_id": None,
        "priority": "high",
    }
    ours = {k: v for k, v in record.headers.items() if not k.startswith("harn")}
    assert ours == {
        "queue": "triage",
        "trigger_id": "review",
        "binding_key": "review@v1",
        "event_id": "trigger_evt_1",
        "priority": "high",
    }
    job = await log.query(lambda r: load_job(r, "triage", 1))
    assert job.event == new_job(1, "acme").event
    assert job.enqueued_at_ms == clock.now_ms
    assert await log.query(lambda r: load_job(r, "triage", 2)) is None


async def test_the_catalog_names_a_queue_once(log, new_job):
    await enqueue_many(log, [new_job(1), new_job(2), new_job(3, queue="other")])
    await enqueue_many(log, [new_job(4)])
    seen = [record.payload for record in await log.read("worker.queues")]
    assert seen == [{"queue": "triage"}, {"queue": "other"}]


@pytest.mark.parametrize("name", ["queues", "a.claims", "a.responses", "", "  "])
async def test_names_of_other_topics_are_refused(log, new_job, name):
    with pytest.raises(UsageError):
        await enqueue_many(log, [new_job(1, queue=name)])
    assert await log.topics() == []


async def test_queues_that_would_share_a_topic_are_refused(log, new_job):
    with pytest.raises(UsageError, match="share"):
        await enqueue_many(log, [new_job(1, queue="a b"), new_job(2, queue="a_b")])
    await enqueue_many(log, [new_job(1, queue="a b")])
    with pytest.raises(UsageError, match=r"worker\.a_b with the queue 'a b'"):
        await enqueue_many(log, [new_job(2, queue="a_b")])
    with pytest.raises(UsageError):
        await WorkerQueue(log, "a/b", Policy()).claim("c")
    assert len(await log.read("worker.a_b")) == 1


# Claiming


async def test_a_claim_is_a_record_with_its_receipt(log, queue, new_job, clock):
    await enqueue_many(log, [new_job(1, "acme")])
    clock.now_ms += 250
    claims = await queue.claim("c1", ttl_ms=1000)
    (claim,) = claims.claims
    assert (claim.job_event_id, claim.delivery, claim.event_id) == (1, 1, "trigger_evt_1")
    assert claim.expires_at_ms == clock.now_ms + 1000
    assert not claims.ready
    assert claims.next_at_ms == claim.expires_at_ms
    (record,) = await log.read("worker.triage.claims")
    assert record.kind == "job_claimed"
    assert record.payload == {
        "job_event_id": 1,
        "claim_id": claim.claim_id,
        "consumer_id": "c1",
        "claimed_at_ms": clock.now_ms,
        "expires_at_ms": clock.now_ms + 1000,
        "scheduling": {
            "selected_at_ms": clock.now_ms,
            "enqueued_at_ms": clock.now_ms - 250,
            "waited_ms": 250,
            "priority": "normal",
            "decision": "priority",
            "promotion_deadline_at_ms": clock.now_ms - 250 + 900_000,
            "fairness_key": "acme",
        },
    }
    assert claim.scheduling.to_json() == record.payload["scheduling"]


async def test_claiming_from_a_queue_that_nobody_used(log, queue):
    assert (await queue.claim("c1")).claims == ()
    assert await log.topics() == []


async def test_a_claim_expires_at_its_last_millisecond(log, queue, new_job, clock):
    await enqueue_many(log, [new_job(1)])
    first = (await queue.claim("c1", ttl_ms=1000)).claims[0]
    clock.now_ms += 999
    assert (await queue.claim("c2")).claims == ()
    assert await states(log) == {1: "claimed"}
    clock.now_ms += 1
    assert await states(log) == {1: "ready"}
    assert (await shown(log))["ready"] == 1
    second = (await queue.claim("c2")).claims[0]
    assert second.claim_id != first.claim_id
    assert second.delivery == 2
    assert (await shown(log))["worst_deliveries"] == 2


async def test_one_claim_request_claims_once(log, queue, new_job):
    await enqueue_many(log, [new_job(n) for n in range(4)])
    first = await queue.claim("c1", 2, request_id="r1")
    again = await queue.claim("c1", 2, request_id="r1")
    assert again.claims == first.claims
    assert len((await queue.claim("c1", 9, request_id="r2")).claims) == 2
    assert len(await log.read("worker.triage.claims")) == 4


async def test_a_delayed_job_waits_for_its_time(log, queue, new_job, clock):
    await enqueue_many(log, [new_job(1, available_at_ms=clock.now_ms + 5000), new_job(2)])
    claims = await queue.claim("c1", 9)
    assert [claim.job_event_id for claim in claims.claims] == [2]
    assert claims.next_at_ms == clock.now_ms + 5000
    assert (await shown(log))["delayed"] == 1
    clock.now_ms += 4999
    assert (await queue.claim("c1")).claims == ()
    clock.now_ms += 1
    assert (await shown(log))["delayed"] == 0
    assert (await shown(log))["ready"] == 1
    assert (await queue.claim("c1")).claims[0].job_event_id == 1


async def test_a_paused_queue_gives_nothing(log, queue, new_job):
    await enqueue_many(log, [new_job(1), new_job(2)])
    claim = (await queue.claim("c1")).claims[0]
    await queue.pause("ops")
    paused = await queue.claim("c1")
    assert (paused.paused, paused.claims) == (True, ())
    assert (await shown(log))["paused_by"] == "ops"
    assert (await queue.renew("c1", [claim.ref])).held == (claim.ref,)
    assert await queue.resume()
    assert not await queue.resume()
    assert len((await queue.claim("c1")).claims) == 1


# Keeping and settling


async def test_renewing_holds_many_claims(log, queue, new_job, clock):
    await enqueue_many(log, [new_job(n) for n in range(3)])
    claims = (await queue.claim("c1", 3, ttl_ms=1000)).claims
    clock.now_ms += 500
    kept = await queue.renew("c1", map(REF, claims), 1000)
    assert kept.held == tuple(map(REF, claims))
    assert kept.expires_at_ms == clock.now_ms + 1000
    clock.now_ms += 999
    assert (await queue.claim("c2", 9)).claims == ()
    clock.now_ms += 1
    assert len((await queue.claim("c2", 9)).claims) == 3


async def test_an_expired_claim_that_nobody_took_can_be_renewed_and_acked(
    log, queue, new_job, clock
):
    await enqueue_many(log, [new_job(1)])
    claim = (await queue.claim("c1", ttl_ms=10)).claims[0]
    clock.now_ms += 50
    assert (await queue.renew("c1", [claim.ref], 10)).held == (claim.ref,)
    assert (await queue.claim("c2")).claims == ()
    clock.now_ms += 50
    (result,) = await queue.settle("c1", [settled(claim)])
    assert (result.acked, result.lost) == (True, False)


async def test_a_claim_that_was_taken_over_is_fenced(log, queue, new_job, clock):
    await enqueue_many(log, [new_job(1)])
    old = (await queue.claim("c1", ttl_ms=1000)).claims[0]
    clock.now_ms += 1000
    new = (await queue.claim("c2", ttl_ms=1000)).claims[0]
    assert (await queue.renew("c1", [old.ref])).lost == (old.ref,)
    assert (await queue.release("c1", [old.ref])).lost == (old.ref,)
    (late,) = await queue.settle("c1", [settled(old, outcome=outcome(), error="too late")])
    assert (late.acked, late.lost) == (False, True)
    kinds = [record.kind for record in await log.read("worker.triage.claims")]
    assert kinds == ["job_claimed", "job_claimed"]
    (response,) = await log.read("worker.triage.responses")
    assert response.payload["claim_lost"] is True
    assert response.payload["error"].startswith("the claim was lost")
    assert response.payload["error"].endswith("too late")
    assert await states(log) == {1: "claimed"}
    (in_time,) = await queue.settle("c2", [settled(new)])
    assert in_time.acked
    assert await states(log) == {1: "acked"}


async def test_an_ack_ends_the_job_with_its_response(log, queue, new_job, clock):
    await enqueue_many(log, [new_job(1), new_job(2)])
    claim = (await queue.claim("c1")).claims[0]
    for _ in range(2):  # the second time changes nothing
        (result,) = await queue.settle("c1", [settled(claim, outcome=outcome())])
        assert (result.acked, result.lost) == (True, False)
    (response,) = await log.read("worker.triage.responses")
    assert response.payload["outcome"]["status"] == "succeeded"
    assert response.payload["handled_at_ms"] == clock.now_ms
    assert "claim_lost" not in response.payload
    acks = [r.payload for r in await log.read("worker.triage.claims") if r.kind == "job_acked"]
    assert acks == [
        {
            "job_event_id": 1,
            "claim_id": claim.claim_id,
            "consumer_id": "c1",
            "acked_at_ms": clock.now_ms,
        }
    ]
    of = await shown(log)
    assert (of["acked"], of["ready"], of["in_flight"], of["responses"]) == (1, 1, 0, 1)


async def test_a_failure_leaves_the_job_to_its_ttl(log, queue, new_job, clock):
    await enqueue_many(log, [new_job(1)])
    claim = (await queue.claim("c1", ttl_ms=1000)).claims[0]
    for _ in range(2):
        (result,) = await queue.settle("c1", [settled(claim, ack=False, error="boom")])
        assert (result.acked, result.lost) == (False, False)
    assert len(await log.read("worker.triage.responses")) == 1
    assert (await queue.claim("c2")).claims == ()
    clock.now_ms += 1000
    assert (await queue.claim("c2")).claims[0].delivery == 2


async def test_a_released_job_is_ready_at_once(log, queue, new_job):
    await enqueue_many(log, [new_job(1)])
    claim = (await queue.claim("c1")).claims[0]
    assert (await queue.release("c1", [claim.ref], "shutdown")).held == (claim.ref,)
    record = (await log.read("worker.triage.claims"))[-1]
    assert record.kind == "job_released"
    assert record.payload["reason"] == "shutdown"
    assert (await queue.claim("c2")).claims[0].job_event_id == 1


async def test_purging_leaves_claimed_jobs_alone(log, queue, new_job, clock):
    await enqueue_many(
        log, [*(new_job(n) for n in range(5)), new_job(9, available_at_ms=clock.now_ms + 10)]
    )
    claim = (await queue.claim("c1", ttl_ms=1000)).claims[0]
    assert await queue.purge("ops", "flood") == 5
    assert await queue.purge("ops") == 0
    of = await shown(log)
    assert (of["ready"], of["delayed"], of["in_flight"], of["purged"]) == (0, 0, 1, 5)
    purged = [r for r in await log.read("worker.triage.claims") if r.kind == "job_purged"]
    assert {record.payload["purged_by"] for record in purged} == {"ops"}
    assert purged[0].payload["reason"] == "flood"
    assert (await queue.settle("c1", [settled(claim)]))[0].acked
    clock.now_ms += 5000
    assert (await queue.claim("c1")).claims == ()


# Clocks


async def test_a_consumer_whose_clock_is_a_minute_off_runs_no_job_twice(sqlite_bench, new_job):
    log = await sqlite_bench.open()
    clock = sqlite_bench.clock
    ahead_clock = type(clock)()
    ahead_clock.now_ms += 60_000
    ahead = WorkerQueue(await sqlite_bench.open(ahead_clock), "triage", Policy())
    here = WorkerQueue(log, "triage", Policy())
    await enqueue_many(log, [new_job(n) for n in range(4)])
    mine, other = (await here.claim("here", 2)).claims, (await ahead.claim("ahead", 2)).claims
    assert sorted(c.job_event_id for c in (*mine, *other)) == [1, 2, 3, 4]
    for _ in range(6):  # both renew at half the TTL, each by its own clock
        clock.now_ms += 150_000
        ahead_clock.now_ms += 150_000
        assert (await ahead.claim("ahead", 9)).claims == ()
        assert (await here.claim("here", 9)).claims == ()
        assert (await here.renew("here", map(REF, mine))).lost == ()
        assert (await ahead.renew("ahead", map(REF, other))).lost == ()
    assert all(s.acked for s in await here.settle("here", map(settled, mine)))
    assert all(s.acked for s in await ahead.settle("ahead", map(settled, other)))
    assert (await shown(log))["acked"] == 4


async def test_a_job_that_a_fast_clock_made_ready_is_not_taken_before_its_time(
    sqlite_bench, new_job
):
    log = await sqlite_bench.open()
    clock = sqlite_bench.clock
    ahead_clock = type(clock)()
    ahead_clock.now_ms += 10_000
    here = WorkerQueue(log, "triage", Policy())
    ahead = WorkerQueue(await sqlite_bench.open(ahead_clock), "triage", Policy())
    await enqueue_many(log, [new_job(1), new_job(2)])
    (claim,) = (await here.claim("here", ttl_ms=5000)).claims
    await ahead.claim("ahead", 0)  # moves the expired job to its lane, and takes nothing
    assert (await shown(log))["in_flight"] in (0, 1)
    taken = (await here.claim("here", 9)).claims
    assert [each.job_event_id for each in taken] == [2]
    assert (await here.renew("here", [claim.ref])).held == (claim.ref,)


# Fair shares in the store


async def test_all_consumers_share_one_order(bench, log, new_job):
    policy = Policy(strategy="drr", starvation_age_ms=0, weights={"a": 3, "b": 1})
    await enqueue_many(log, [new_job(n, "ab"[n % 2]) for n in range(40)])
    logs = [log] if bench.kind == "memory" else [log, await bench.open()]
    order = []
    for n in range(16):
        queue = WorkerQueue(logs[n % len(logs)], "triage", policy)
        order += [c.scheduling.fairness_key for c in (await queue.claim("c")).claims]
    assert " ".join(order) == "a b a a b a a a b a a a b a a a"
    await log.rebuild()
    (of,) = (await log.query(lambda r: scheduler_figures(r, policy)))["per_queue"]
    assert [(k["fairness_key"], k["selected_total"], k["deficit"]) for k in of["keys"]] == [
        ("a", 12, 0),
        ("b", 4, 0),
    ]
    assert of["rounds_completed"] == 4


async def test_a_batch_is_what_single_claims_are(bench, log, new_job):
    policy = Policy(strategy="drr", starvation_age_ms=0, weights={"a": 3, "b": 1})
    await enqueue_many(log, [new_job(n, "ab"[n % 2]) for n in range(40)])
    claims = (await WorkerQueue(log, "triage", policy).claim("c", 16)).claims
    order = " ".join(claim.scheduling.fairness_key for claim in claims)
    assert order == "a b a a b a a a b a a a b a a a"


def keys_of(claims):
    return [claim.scheduling.fairness_key for claim in claims.claims]


async def credits_of(log):
    return {k.key: k.credit for k in await log.query(lambda r: r.queues.keys("triage", "tenant"))}


async def test_a_key_that_comes_back_finds_its_balance(log, new_job):
    """It was passed over while it had nothing ready, in a scan that found its balance."""
    policy = Policy(strategy="drr", starvation_age_ms=0, weights={"a": 3, "b": 3})
    queue = WorkerQueue(log, "triage", policy)
    await enqueue_many(log, [new_job(1, "a"), *(new_job(n, "b") for n in range(2, 9))])
    assert keys_of(await queue.claim("c", 3)) == ["a", "b", "b"]
    await enqueue_many(log, [new_job(9, "a"), new_job(10, "a")])
    assert keys_of(await queue.claim("c", 3)) == ["a", "b", "a"]


async def test_a_key_at_its_cap_gets_no_credits(log, new_job):
    policy = Policy(strategy="drr", starvation_age_ms=0, max_concurrent_per_key=1)
    queue = WorkerQueue(log, "triage", policy)
    await enqueue_many(log, [new_job(1, "a")])
    assert keys_of(await queue.claim("c")) == ["a"]
    await enqueue_many(log, [new_job(2, "b"), new_job(3, "a")])
    assert keys_of(await queue.claim("c", 9)) == ["b"]
    assert await credits_of(log) == {"a": 0, "b": 0}


async def test_a_key_that_runs_out_in_a_batch_gets_no_credits(log, new_job):
    queue = WorkerQueue(log, "triage", Policy(strategy="drr", starvation_age_ms=0))
    await enqueue_many(log, [new_job(1, "a"), new_job(2, "b"), new_job(3, "b"), new_job(4, "b")])
    assert keys_of(await queue.claim("c", 3)) == ["a", "b", "b"]
    assert await credits_of(log) == {"a": 0, "b": 0}


async def test_a_round_of_many_keys_is_given_out_in_pieces(log, new_job, monkeypatch):
    monkeypatch.setattr(selection, "GRANTED_AT_ONCE", 10)
    policy = Policy(strategy="drr", starvation_age_ms=0, default_weight=2)
    queue = WorkerQueue(log, "triage", policy)
    keys = [f"k{n:02}" for n in range(25)]
    await enqueue_many(log, [new_job(n, key) for n, key in enumerate(keys * 4)])
    most, order = [], []
    for _ in range(100):
        order += keys_of(await queue.claim("c"))
        granted = await log.query(lambda r: r.queues.keys("triage", "tenant"))
        most.append(sum(each.credit > 0 for each in granted))
    assert most[:12] == [10] * 10 + [20] * 2
    assert order == keys * 4
    assert (await log.query(lambda r: r.queues.round("triage", "tenant"))).rounds == 2


async def test_age_and_credit_in_one_batch(log, new_job, clock):
    """What age took is not offered again to the key's own turn, and the other way round."""
    policy = Policy(strategy="drr", starvation_age_ms=1000)
    queue = WorkerQueue(log, "triage", policy)
    await enqueue_many(log, [new_job(1, "a"), new_job(2, "b")])
    clock.now_ms += 500
    await enqueue_many(log, [new_job(3, "a"), new_job(4, "a"), new_job(5, "b")])
    clock.now_ms += 500
    claims = await queue.claim("c", 9)
    assert [(c.job_event_id, c.scheduling.decision) for c in claims.claims] == [
        (1, "starvation-deadline"),
        (2, "starvation-deadline"),
        (3, "fair-share"),
        (5, "fair-share"),
        (4, "fair-share"),
    ]


async def test_deferrals_are_counted(log, new_job):
    policy = Policy(strategy="drr", max_concurrent_per_key=1)
    queue = WorkerQueue(log, "triage", policy)
    await enqueue_many(log, [new_job(n, "a") for n in range(3)])
    assert len((await queue.claim("c")).claims) == 1
    claims = await queue.claim("c")
    assert claims.claims == ()
    assert claims.ready
    (of,) = (await log.query(lambda r: scheduler_figures(r, policy)))["per_queue"]
    assert of["keys"][0]["deferred_total"] == 1
    assert of["keys"][0]["in_flight"] == 1


async def test_excluded_keys_are_not_claimed(log, queue, new_job):
    await enqueue_many(log, [new_job(1, "a"), new_job(2, "b"), new_job(3, "a")])
    claims = await queue.claim("c", 9, excluded_keys=["a"])
    assert [claim.job_event_id for claim in claims.claims] == [2]
    assert claims.ready


async def test_a_suspended_fair_share_is_shown(log, new_job, clock):
    policy = Policy(strategy="drr")
    await enqueue_many(log, [new_job(1, "a"), new_job(2, "b")])
    clock.now_ms += 300_000
    (of,) = (await log.query(lambda r: scheduler_figures(r, policy)))["per_queue"]
    assert of["starving_jobs"] == 2
    assert of["keys"][0]["oldest_ready_age_ms"] == 300_000

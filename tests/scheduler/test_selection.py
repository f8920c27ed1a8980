"""Selection over lists: FIFO, promotions, fair shares, starvation and caps."""

from __future__ import annotations

from collections import Counter
from itertools import count
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harn_temporal.scheduler import Candidate, Policy, receipt, select, selection
from harn_temporal.scheduler.in_memory import MemoryJobs

MINUTE = 60_000
HIGH, NORMAL, LOW = range(3)
FIFO = Policy()
FAIR = Policy(strategy="drr", starvation_age_ms=0)


def job(job_id, key="k", rank=NORMAL, at=0):
    return Candidate(job_id, key, rank, at, at)


def taken(jobs, policy, now_ms=0, limit=1000, excluded=()):
    """Ids of the jobs in the order in which they are claimed, none being given back."""
    found = []
    while len(found) < limit:
        selection = select(jobs, policy, now_ms, excluded)
        if selection is None:
            break
        jobs.take(selection)
        found.append(selection.candidate)
    return found


def ids(candidates):
    return [candidate.job_id for candidate in candidates]


# FIFO


def test_fifo_goes_by_rank_then_age_then_id():
    jobs = [job(1, rank=LOW), job(2, at=5), job(4, at=3), job(3, at=3), job(5, rank=HIGH, at=9)]
    assert ids(taken(MemoryJobs(jobs), FIFO)) == [5, 3, 4, 2, 1]


@pytest.mark.parametrize(("rank", "minutes"), [(NORMAL, 15), (LOW, 30)])
@pytest.mark.parametrize("strategy", ["fifo", "drr"])
def test_promotion_to_the_millisecond(rank, minutes, strategy):
    policy = Policy(strategy=strategy, starvation_age_ms=0)
    waiting, urgent = job(1, rank=rank), job(2, rank=HIGH, at=1)
    before = select(MemoryJobs([waiting, urgent]), policy, minutes * MINUTE - 1)
    assert before.candidate == urgent
    assert before.decision == ("priority" if strategy == "fifo" else "fair-share")
    at = select(MemoryJobs([waiting, urgent]), policy, minutes * MINUTE)
    assert at.candidate == waiting
    assert at.decision == "starvation-deadline"


def test_promoted_normal_goes_before_promoted_low_even_when_younger():
    jobs = MemoryJobs([job(1, rank=LOW), job(2, at=20 * MINUTE), job(3, rank=HIGH)])
    assert ids(taken(jobs, FIFO, 40 * MINUTE)) == [2, 1, 3]


def test_high_is_never_promoted():
    selection = select(MemoryJobs([job(1, rank=HIGH)]), FIFO, 10**9)
    assert selection.decision == "priority"
    assert receipt(selection, 10**9).promotion_deadline_at_ms is None


def test_a_deadline_that_changed_nothing_is_not_the_reason():
    alone = select(MemoryJobs([job(1), job(2, rank=LOW)]), FIFO, 60 * MINUTE)
    assert alone.candidate.job_id == 1
    assert alone.decision == "priority"


def test_a_stream_of_high_jobs_does_not_stop_a_low_one():
    jobs = MemoryJobs([job(0, rank=LOW)])
    now = 0
    for job_id in count(1):
        jobs.ready.append(job(job_id, rank=HIGH, at=now))
        selection = select(jobs, FIFO, now)
        jobs.take(selection)
        if selection.candidate.job_id == 0:
            break
        now += 7_777
    assert 30 * MINUTE <= now < 30 * MINUTE + 7_777


def test_a_cap_holds_with_fifo_too_and_delays_nobody_else():
    policy = Policy(max_concurrent_per_key=2)
    jobs = MemoryJobs([job(1, "a"), job(2, "a"), job(3, "a"), job(4, "b", at=9)])
    assert ids(taken(jobs, policy)) == [1, 2, 4]
    jobs.claims["a"] -= 1
    assert ids(taken(jobs, policy)) == [3]


def test_excluded_keys_are_passed_over():
    jobs = MemoryJobs([job(1, "a"), job(2, "b")])
    for policy in (FIFO, FAIR):
        assert select(jobs, policy, 0, {"a"}).candidate.job_id == 2
        assert select(jobs, policy, 0, {"a", "b"}) is None


# Fair shares


def test_the_worked_example():
    policy = Policy(strategy="drr", starvation_age_ms=0, weights={"a": 3, "b": 1})
    jobs = MemoryJobs([job(n, "ab"[n % 2]) for n in range(64)])
    order = [candidate.key for candidate in taken(jobs, policy, limit=16)]
    assert " ".join(order) == "a b a a b a a a b a a a b a a a"


def test_within_a_key_rank_decides():
    jobs = MemoryJobs([job(1, rank=LOW), job(2), job(3, rank=HIGH)])
    assert ids(taken(jobs, FAIR)) == [3, 2, 1]


def test_starvation_takes_any_job_oldest_first_and_spends_nothing():
    policy = Policy(strategy="drr", starvation_age_ms=1000, weights={"a": 5})
    jobs = MemoryJobs([job(1, "a", HIGH, 500), job(2, "b", LOW, 0), job(3, "a", LOW, 0)])
    assert select(jobs, policy, 999).candidate.job_id == 1
    first = select(jobs, policy, 1000)
    assert (first.candidate.job_id, first.decision) == (2, "starvation-deadline")
    jobs.take(first)
    second = select(jobs, policy, 1000)
    assert second.candidate.job_id == 3  # not the head of its key
    jobs.take(second)
    assert jobs.starvation_promotions == 2
    assert jobs.rounds == 1  # the one that `select` at 999 began
    assert jobs.credits["b"] == 1
    assert jobs.last_key is None


def test_a_starved_job_of_a_capped_key_waits():
    policy = Policy(strategy="drr", starvation_age_ms=10, max_concurrent_per_key=1)
    jobs = MemoryJobs([job(1, "a", at=0), job(2, "b", at=5)])
    jobs.claims["a"] = 1
    assert select(jobs, policy, 100).candidate.job_id == 2


def test_nothing_is_selected_when_every_key_is_capped():
    policy = Policy(strategy="drr", max_concurrent_per_key=1)
    jobs = MemoryJobs([job(1, "a")])
    jobs.claims["a"] = 1
    assert select(jobs, policy, 0) is None


def test_the_receipt_never_waits_a_negative_time():
    selection = select(MemoryJobs([job(1, at=5000)]), FIFO, 4000)
    made = receipt(selection, 4000)
    assert made.to_json() == {
        "selected_at_ms": 4000,
        "enqueued_at_ms": 5000,
        "waited_ms": 0,
        "priority": "normal",
        "decision": "priority",
        "promotion_deadline_at_ms": 5000 + 15 * MINUTE,
        "fairness_key": "k",
    }


# Properties

KEYS = "abcd"
ranks = st.integers(0, 2)
arrivals = st.lists(st.tuples(st.sampled_from(KEYS), ranks, st.integers(0, 50)), max_size=40)
policies = st.builds(
    Policy,
    strategy=st.sampled_from(["fifo", "drr"]),
    quantum=st.integers(1, 3),
    starvation_age_ms=st.sampled_from([0, 10, 40]),
    max_concurrent_per_key=st.integers(0, 3),
    weights=st.dictionaries(st.sampled_from(KEYS), st.integers(1, 4)),
)


def queue_of(items):
    return MemoryJobs([job(n, key, rank, at) for n, (key, rank, at) in enumerate(items)])


@pytest.mark.parametrize("granted_at_once", [1, 2, 1000])
def test_shares_are_within_one_quantum_whatever_the_order(granted_at_once):
    with patch.object(selection, "GRANTED_AT_ONCE", granted_at_once):
        check_shares()


@given(st.permutations("a" * 40 + "b" * 40 + "c" * 40), st.integers(1, 3), st.data())
def check_shares(order, quantum, data):
    """While all keys are backlogged, each has had its weight in every round, up to one round."""
    weights = {key: data.draw(st.integers(1, 3), key) for key in "abc"}
    policy = Policy(strategy="drr", starvation_age_ms=0, quantum=quantum, weights=weights)
    jobs = MemoryJobs([job(n, key) for n, key in enumerate(order)])
    served = Counter()
    while all(any(each.key == key for each in jobs.ready) for key in "abc"):
        chosen = select(jobs, policy, 0)
        jobs.take(chosen)
        served[chosen.candidate.key] += 1
        for key in "abc":
            due = (jobs.rounds - 1) * policy.grant(key)
            assert due <= served[key] <= due + policy.grant(key)


@given(arrivals, policies, st.integers(0, 80))
def test_caps_are_never_exceeded_and_nothing_is_left_that_could_go(items, policy, now_ms):
    jobs = queue_of(items)
    taken(jobs, policy, now_ms)
    cap = policy.max_concurrent_per_key
    for key in KEYS:
        offered = sum(1 for each, _, _ in items if each == key)
        assert jobs.claims[key] == (min(cap, offered) if cap else offered)


@given(arrivals, policies, st.integers(0, 80), st.randoms())
def test_the_order_of_a_list_changes_nothing(items, policy, now_ms, random):
    jobs = queue_of(items)
    shuffled = MemoryJobs(random.sample(jobs.ready, len(jobs.ready)))
    assert taken(jobs, policy, now_ms) == taken(shuffled, policy, now_ms)


@given(arrivals, policies)
def test_no_balance_is_below_zero_or_above_one_round(items, policy):
    jobs = queue_of(items)
    while (selection := select(jobs, policy, 20)) is not None:
        jobs.take(selection)
        for key, credit in jobs.credits.items():
            assert 0 <= credit <= policy.grant(key)


@given(st.integers(1, 5), st.integers(1, 4))
def test_a_cold_key_waits_for_one_round_at_most(hot_keys, weight):
    """However much the others bring: a key that has just come is served in the next round."""
    policy = Policy(strategy="drr", starvation_age_ms=0, default_weight=weight)
    ids_of = count()
    jobs = MemoryJobs(job(next(ids_of), f"hot{n}") for n in range(hot_keys) for _ in range(50))
    taken(jobs, policy, limit=7)
    jobs.ready.append(job(next(ids_of), "cold"))
    waited = [candidate.key for candidate in taken(jobs, policy, limit=100)].index("cold")
    assert waited <= 2 * hot_keys * weight

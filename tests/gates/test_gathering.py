"""Debounce and batch: one of several."""

from __future__ import annotations

import pytest

from harn_temporal.contracts import EventAddress
from harn_temporal.gates.gathering import batch_members
from harn_temporal.gates.models import Batch, Debounce

QUIET = Debounce(key="event.id", period_ms=1_000)
BOUNDED = Debounce(key="event.id", period_ms=1_000, max_wait_ms=2_500)
TEN = Batch(size=10, timeout_ms=5_000)


async def test_the_last_arrival_goes_on_when_it_was_quiet(desk, clock):
    assert await desk.says(QUIET, "a") == 1_000
    clock.at(999)
    second = await desk.ask(QUIET, "b")
    assert second.until_ms == clock.now_ms + 1_000
    assert [(wake.holder, wake.granted) for wake in second.wakes] == [("a", False)]
    skip = await desk.ask(QUIET, "a")
    assert skip.verdict == "skip"
    assert skip.detail == {"gate": "t@v1:k", "reason": "a later event took its place"}
    clock.at(1_998)
    assert await desk.says(QUIET, "b") == 1_999
    clock.at(1_999)
    assert await desk.says(QUIET, "b") is True
    assert await desk.says(QUIET, "b") is True
    assert await desk.says(QUIET, "a") is False
    assert await desk.kinds(QUIET) == ["debounce_seen", "debounce_seen", "debounce_selected"]


async def test_who_is_taken_from_a_debounce_is_told_so(desk, clock):
    await desk.ask(QUIET, "a")
    assert await desk.abandon("a", reason="released by kim") == []
    assert (await desk.ask(QUIET, "a")).detail["reason"] == "released by kim"
    clock.at(400)
    assert await desk.says(QUIET, "b") == 1_400
    clock.at(500)
    await desk.ask(QUIET, "c")
    assert [(await desk.ask(QUIET, each)).detail["reason"] for each in "ab"] == [
        "released by kim",
        "a later event took its place",
    ]


async def test_reasons_at_a_debounce_are_told_apart_where_gates_share_a_topic(desk, clock):
    await desk.ask(QUIET, "a", 7)
    await desk.ask(QUIET, "x", "7")
    await desk.abandon("a", reason="released by kim")
    await desk.ask(QUIET, "y", "7")
    reasons = [
        (await desk.ask(QUIET, holder, value)).detail["reason"]
        for holder, value in (("a", 7), ("x", "7"))
    ]
    assert reasons == ["released by kim", "a later event took its place"]


async def test_who_comes_when_it_is_due_begins_anew(desk, clock):
    await desk.ask(QUIET, "a")
    clock.at(1_000)
    later = await desk.ask(QUIET, "b")
    assert [(wake.holder, wake.granted) for wake in later.wakes] == [("a", True)]
    assert await desk.says(QUIET, "a") is True
    assert await desk.says(QUIET, "b") == 2_000


async def test_a_steady_stream_goes_on_at_its_longest_wait(desk, clock):
    granted = []
    for number in range(41):  # every 500 ms, for 20 s: never quiet
        clock.at(number * 500)
        if number == 13:
            await desk.reopen()
        asked = await desk.ask(BOUNDED, f"{number}")
        granted += [int(wake.holder) for wake in asked.wakes if wake.granted]
    # From the first on, 2.5 s each: 0 to 4, then 5 to 9, and so on; the last of each goes on.
    assert granted == [4, 9, 14, 19, 24, 29, 34, 39]
    for number in range(40):
        assert await desk.says(BOUNDED, f"{number}") is (number in granted)


async def test_the_longest_wait_ends_at_its_millisecond(desk, clock):
    for at_ms in (0, 900, 1_800, 2_499):
        clock.at(at_ms)
        await desk.ask(BOUNDED, f"{at_ms}")
    assert await desk.says(BOUNDED, "2499") == 2_500
    clock.at(2_500)
    assert await desk.says(BOUNDED, "2499") is True
    assert await desk.says(BOUNDED, "next") == 3_500


async def test_a_stream_without_a_longest_wait_goes_on_when_it_ends(desk, clock):
    for number in range(30):
        clock.at(number * 999)
        await desk.ask(QUIET, f"{number}")
    assert "debounce_selected" not in await desk.kinds(QUIET)
    clock.now_ms += 1_000
    assert await desk.says(QUIET, "29") is True


async def test_nothing_is_lost_when_nobody_was_there_at_the_time(desk, clock):
    await desk.ask(QUIET, "a")
    await desk.reopen()
    clock.at(3_600_000)
    assert await desk.says(QUIET, "a") is True


async def test_a_last_arrival_that_is_gone_leaves_a_clean_gate(desk, clock):
    await desk.ask(QUIET, "a")
    clock.at(10)
    await desk.ask(QUIET, "b")
    assert await desk.abandon("b") == []
    clock.at(20)
    after = await desk.ask(QUIET, "c")
    assert (after.until_ms - clock.now_ms, after.wakes) == (1_000, ())
    assert [await desk.says(QUIET, holder) for holder in "ab"] == [False, False]


async def batches(desk, count):
    """What a batch of ten makes of so many arrivals: sizes of batches by their root, in order."""
    answers = {}
    for number in range(count):
        answers[number] = await desk.ask(TEN, f"{number}")
    desk.clock.at(5_000)
    for number in range(count):
        answers[number] = await desk.ask(TEN, f"{number}")
    roots = {n: a for n, a in answers.items() if a.verdict == "granted"}
    merged = [a.detail["merged_into"] for a in answers.values() if a.verdict == "skip"]
    members = [
        [m.holder for m in await desk.log.query(lambda r, a=a: batch_members(r, a.batch))]
        for a in roots.values()
    ]
    assert [a.count for a in roots.values()] == [len(names) for names in members]
    assert sorted((name for names in members for name in names), key=int) == [
        f"{n}" for n in range(count)
    ]
    for root, names in zip(roots, members, strict=True):
        assert names[0] == f"{root}"
        assert merged.count(names[0]) == len(names) - 1
    return [len(names) for names in members]


@pytest.mark.parametrize(
    ("count", "sizes"), [(7, [7]), (10, [10]), (23, [10, 10, 3]), (1, [1]), (20, [10, 10])]
)
async def test_a_batch_has_at_most_its_size(desk, count, sizes):
    assert await batches(desk, count) == sizes


async def test_the_tenth_fires_at_once_and_tells_the_root(desk):
    waits = [await desk.says(TEN, f"{n}") for n in range(9)]
    assert waits == [5_000] * 9
    last = await desk.ask(TEN, "9")
    assert last.detail == {
        "gate": "t@v1:k",
        "merged_into": "0",
        "merged_into_event_id": "event-0",
        "count": 10,
    }
    assert [wake.holder for wake in last.wakes] == [f"{n}" for n in range(9)]
    assert [wake.granted for wake in last.wakes] == [True] + [False] * 8
    root = await desk.ask(TEN, "0")
    assert root == await desk.ask(TEN, "0")
    members = await desk.log.query(lambda reader: batch_members(reader, root.batch))
    assert members[3].event_id == "event-3"
    assert members[3].address == EventAddress(topic="trigger.inbox.envelopes", event_id=7)


async def test_a_batch_is_due_a_timeout_after_its_first_member(desk, clock):
    await desk.ask(TEN, "a")
    clock.at(4_000)
    assert await desk.says(TEN, "b") == 5_000
    clock.at(4_999)
    assert await desk.says(TEN, "c") == 5_000
    clock.at(5_000)
    assert await desk.says(TEN, "b") is False  # any of them finds it due
    assert (await desk.ask(TEN, "a")).count == 3


async def test_who_comes_when_a_batch_is_due_begins_the_next(desk, clock):
    await desk.ask(TEN, "a")
    clock.at(5_000)
    later = await desk.ask(TEN, "b")
    assert [(wake.holder, wake.granted) for wake in later.wakes] == [("a", True)]
    assert later.until_ms == clock.now_ms + 5_000
    assert (await desk.ask(TEN, "a")).count == 1


async def test_a_batch_of_one(desk):
    answer = await desk.ask(Batch(size=1, timeout_ms=1), "a")
    assert (answer.verdict, answer.count, answer.wakes) == ("granted", 1, ())


async def test_a_root_that_is_gone_makes_way(desk, clock):
    for holder in "abc":
        await desk.ask(TEN, holder)
    await desk.abandon("a")
    clock.at(5_000)
    answer = await desk.ask(TEN, "b")
    assert (answer.verdict, answer.count) == ("granted", 2)
    assert await desk.says(TEN, "c") is False
    assert (await desk.ask(TEN, "a")).detail["reason"] == "it left its batch"


async def test_a_batch_whose_members_are_all_gone_is_forgotten(desk, clock):
    for holder in "ab":
        await desk.ask(TEN, holder)
        await desk.abandon(holder)
    clock.at(4_000)
    assert await desk.says(TEN, "c") == 9_000


async def test_who_made_a_batch_full_tells_the_root_again(desk):
    """Its worker may have died after the commit, before it told anybody."""
    for number in range(10):
        await desk.ask(TEN, f"{number}")
    again = await desk.ask(TEN, "9")
    assert [(wake.holder, wake.granted) for wake in again.wakes] == [("0", True)]
    assert (await desk.ask(TEN, "8")).wakes == ()


JOB = "job/triage/1"
PAIR = Batch(size=2, timeout_ms=5_000)


async def members_of(desk, answer):
    found = await desk.log.query(lambda reader: batch_members(reader, answer.batch))
    return [member.event_id for member in found]


async def test_a_job_that_is_delivered_again_goes_on_for_the_same_batch(desk):
    """The others are acked when they learn where they went: nobody else would handle them."""
    await desk.ask(PAIR, f"{JOB}/first")
    merged = await desk.ask(PAIR, "job/triage/2/first")
    assert merged.detail["merged_into"] == f"{JOB}/first"
    for claim in ("first", "second", "third", "third"):
        again = await desk.ask(PAIR, f"{JOB}/{claim}")
        assert (again.verdict, again.count) == ("granted", 2)
        assert await members_of(desk, again) == [f"event-{JOB}/first", "event-job/triage/2/first"]
    assert await desk.says(PAIR, "job/triage/11/first") == 5_000


async def test_a_job_is_not_merged_into_a_delivery_of_its_own_that_is_gone(desk):
    await desk.ask(PAIR, f"{JOB}/first")
    again = await desk.ask(PAIR, f"{JOB}/second")
    assert (again.verdict, again.count) == ("granted", 2)


async def test_a_job_that_left_before_its_batch_went_on_begins_another(desk):
    first = [f"{JOB}/first", "job/triage/2/first"]
    for holder in first:
        await desk.ask(TEN, holder)
    await desk.abandon(first[0])
    desk.clock.at(5_000)
    assert (await desk.ask(TEN, first[1])).count == 1
    assert await desk.says(TEN, f"{JOB}/second") == 10_000
    desk.clock.at(10_000)
    for claim in ("second", "third"):
        answer = await desk.ask(TEN, f"{JOB}/{claim}")
        assert await members_of(desk, answer) == [f"event-{JOB}/second"]

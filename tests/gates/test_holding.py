"""Concurrency and singleton: who holds, who waits, and who is next."""

from __future__ import annotations

from harn_temporal.activities.gate_grants import GrantWatch
from harn_temporal.activities.gate_wakes import Wakes
from harn_temporal.gates.models import Concurrency, Singleton

TWO = Concurrency(max=2)
ONE = Concurrency(max=1)
ONLY = Singleton()


async def test_max_hold_and_the_others_wait_in_order(desk, clock):
    assert [await desk.says(TWO, holder) for holder in "ab"] == [True, True]
    third, fourth = await desk.ask(TWO, "c"), await desk.ask(TWO, "d")
    assert [(each.position, each.waiting) for each in (third, fourth)] == [(1, 1), (2, 2)]
    assert (third.gate, third.until_ms - clock.now_ms) == ("t@v1:k", 60_000)
    assert await desk.release("b") == ["c"]
    assert await desk.says(TWO, "c") is True
    assert (await desk.ask(TWO, "d")).position == 1
    assert await desk.release("a") == ["d"]
    assert await desk.release("c") == []
    assert await desk.kinds(TWO) == [
        "concurrency_acquired",
        "concurrency_acquired",
        "concurrency_waiting",
        "concurrency_waiting",
        "concurrency_released",
        "concurrency_acquired",
        "concurrency_released",
        "concurrency_acquired",
        "concurrency_released",
    ]


async def test_asking_again_changes_nothing(desk):
    permit = await desk.ask(ONE, "a")
    assert await desk.ask(ONE, "a") == permit
    waits = await desk.ask(ONE, "b")
    assert await desk.ask(ONE, "b") == waits
    assert await desk.kinds(ONE) == ["concurrency_acquired", "concurrency_waiting"]


async def test_a_release_that_is_done_again_names_the_same_waiter(desk):
    for holder in "abc":
        await desk.ask(ONE, holder)
    assert await desk.release("a") == ["b"]
    assert await desk.release("a") == ["b"]
    assert await desk.release("b") == ["c"]
    assert await desk.release("a") == ["b"]


async def test_a_permit_that_was_acquired_again_is_released_again(desk):
    await desk.ask(ONE, "a")
    assert await desk.release("a") == []
    assert await desk.says(ONE, "a") is True
    await desk.ask(ONE, "b")
    assert await desk.release("a") == ["b"]
    assert await desk.release("a") == ["b"]
    assert await desk.says(ONE, "c") is not True


async def test_waiters_go_by_rank_and_then_by_arrival(desk, clock):
    await desk.ask(ONE, "first")
    for holder, rank in (("l1", 2), ("h1", 0), ("n1", 1), ("h2", 0), ("l2", 2)):
        clock.now_ms += 1
        await desk.ask(ONE, holder, rank=rank)
    order, holder = [], "first"
    while woken := await desk.release(holder):
        [holder] = woken
        order.append(holder)
    assert order == ["h1", "h2", "n1", "l1", "l2"]


async def test_arrivals_in_one_millisecond_go_by_who_asked_first(desk):
    for holder in ("z", "y", "x", "w"):
        await desk.ask(ONE, holder)
    assert [(await desk.ask(ONE, each)).position for each in ("y", "x", "w")] == [1, 2, 3]


async def test_who_gave_its_permit_back_for_a_retry_stands_before_who_came_later(desk, clock):
    first = await desk.ask(ONE, "a")
    clock.at(10)
    await desk.ask(ONE, "b")
    clock.at(20)
    await desk.ask(ONE, "c")
    assert await desk.release("a") == ["b"]
    clock.at(30)
    again = await desk.ask(ONE, "a", arrived_at_ms=first.permit.arrived_at_ms)
    assert (again.verdict, again.position) == ("wait", 1)
    assert await desk.release("b") == ["a"]
    assert (await desk.ask(ONE, "a")).permit.arrived_at_ms == first.permit.arrived_at_ms


async def test_a_permit_expires_at_its_millisecond(desk, clock):
    await desk.ask(ONE, "a", ttl_ms=1_000)
    clock.at(999)
    waits = await desk.ask(ONE, "b")
    assert waits.until_ms == clock.now_ms + 1  # it looks by itself when the permit expires
    clock.at(1_000)
    assert await desk.says(ONE, "b") is True
    assert await desk.renew("a") == []
    assert (await desk.ask(ONE, "a")).verdict == "wait"


async def test_the_one_who_comes_when_a_permit_expires_does_not_overtake(desk, clock):
    await desk.ask(ONE, "a", ttl_ms=1_000)
    await desk.ask(ONE, "b")
    clock.at(1_000)
    third = await desk.ask(ONE, "c")
    assert (third.verdict, [wake.holder for wake in third.wakes]) == ("wait", ["b"])
    assert await desk.says(ONE, "b") is True


async def test_the_one_who_comes_when_a_permit_expires_has_the_place_of_its_rank(desk, clock):
    await desk.ask(ONE, "a", ttl_ms=1_000)
    await desk.ask(ONE, "b", rank=1)
    clock.at(1_000)
    assert await desk.says(ONE, "c", rank=0) is True
    assert (await desk.ask(ONE, "b", rank=1)).position == 1


async def test_the_one_who_comes_back_when_a_permit_expires_has_the_place_it_had(desk, clock):
    first = await desk.ask(ONE, "old")
    clock.at(10)
    await desk.release("old")
    await desk.ask(ONE, "a", ttl_ms=1_000)
    await desk.ask(ONE, "b")
    clock.at(1_010)
    assert await desk.says(ONE, "old", arrived_at_ms=first.permit.arrived_at_ms) is True
    assert (await desk.ask(ONE, "b")).position == 1


async def test_all_permits_that_have_expired_are_given_at_once(desk, clock):
    three = Concurrency(max=3)
    for holder in "abc":
        await desk.ask(three, holder, ttl_ms=1_000)
    for holder in "xy":
        await desk.ask(three, holder)
    clock.at(1_000)
    last = await desk.ask(three, "z")
    assert (last.verdict, [wake.holder for wake in last.wakes]) == ("granted", ["x", "y"])


async def test_a_permit_is_not_renewed_to_an_earlier_time(desk, clock):
    await desk.ask(ONE, "a", ttl_ms=10_000)
    assert await desk.renew("a", 1_000) == ["t@v1:k"]
    assert await desk.kinds(ONE) == ["concurrency_acquired"]
    clock.at(9_999)
    assert (await desk.ask(ONE, "b")).verdict == "wait"
    clock.at(10_000)
    assert await desk.says(ONE, "b") is True


async def test_a_renewed_permit_holds_on(desk, clock):
    await desk.ask(ONE, "a", ttl_ms=1_000)
    await desk.ask(ONLY, "a", ttl_ms=1_000)
    clock.at(999)
    assert await desk.renew("a", 1_000) == ["t@v1:k", "t@v1:k"]
    clock.at(1_998)
    assert (await desk.ask(ONE, "b")).verdict == "wait"
    assert await desk.says(ONLY, "b") is False
    clock.at(1_999)
    assert await desk.says(ONE, "b") is True
    assert await desk.says(ONLY, "c") is True


async def test_a_permit_that_nobody_took_is_still_its_holders(desk, clock):
    await desk.ask(ONE, "a", ttl_ms=1_000)
    clock.at(5_000)
    again = await desk.ask(ONE, "a", ttl_ms=1_000)
    assert again.permit.expires_at_ms == clock.now_ms + 1_000
    assert (await desk.ask(ONE, "b")).verdict == "wait"


async def test_a_sweep_ends_what_has_expired_and_lets_the_next_go_on(desk, clock):
    gate = Concurrency(max=3)
    for holder in "abc":
        await desk.ask(gate, holder, ttl_ms=1_000)
    for holder in "def":
        await desk.ask(gate, holder)
    await desk.ask(ONLY, "s", ttl_ms=1_000)
    clock.at(999)
    assert (await desk.sweep()).expired == 0
    clock.at(1_000)
    swept = await desk.sweep()
    assert (swept.expired, swept.done) == (4, True)
    assert [wake.holder for wake in swept.wakes] == ["d", "e", "f"]
    assert (await desk.sweep()).expired == 0
    assert await desk.says(ONLY, "t") is True


async def test_a_sweep_is_done_in_steps(desk, clock):
    for number in range(7):
        await desk.ask(ONE, f"{number}", number, ttl_ms=1_000)
    clock.at(1_000)
    found = [await desk.sweep(3) for _ in range(3)]
    assert [each.expired for each in found] == [3, 3, 1]
    assert not found[0].done


async def test_who_is_gone_leaves_nothing(desk):
    for holder in "abc":
        await desk.ask(ONE, holder)
    assert await desk.abandon("b") == []  # it waited
    assert await desk.abandon("a") == ["c"]
    assert await desk.abandon("a") == []
    assert await desk.says(ONE, "c") is True


async def test_a_permit_is_taken_at_one_gate_only_where_that_is_asked(desk):
    await desk.ask(ONE, "a", "x")
    await desk.ask(ONE, "a", "y")
    [gate] = await desk.log.query(lambda reader: reader.gates.named("t@v1:x"))
    assert await desk.abandon("a", gate=gate, reason="released by hand") == []
    assert await desk.says(ONE, "b", "x") is True
    assert (await desk.ask(ONE, "b", "y")).verdict == "wait"


async def test_a_singleton_skips_while_one_runs(desk, clock):
    assert await desk.says(ONLY, "a") is True
    assert await desk.says(ONLY, "a") is True
    skip = await desk.ask(ONLY, "b")
    assert skip.detail == {"gate": "t@v1:k", "held_by": "a"}
    assert await desk.says(ONLY, "c", "other") is True
    assert await desk.release("a") == []
    assert await desk.ask(ONLY, "b") == skip  # what it was told holds
    assert await desk.says(ONLY, "d") is True
    assert (await desk.kinds(ONLY)) == [
        "singleton_acquired",
        "singleton_skipped",
        "singleton_released",
        "singleton_acquired",
    ]


async def test_a_singleton_is_free_when_its_permit_expires(desk, clock):
    assert await desk.says(ONLY, "a", ttl_ms=1_000) is True
    clock.at(999)
    assert await desk.says(ONLY, "b") is False
    clock.at(1_000)
    assert await desk.says(ONLY, "c") is True


async def test_releasing_one_kind_leaves_the_other(desk):
    from harn_temporal.gates.leaving import release

    await desk.ask(ONE, "a")
    await desk.ask(ONLY, "a")
    await desk.ask(ONE, "b")
    wakes = await desk.log.transact(lambda tx: release(tx, "a", kinds=["concurrency"]))
    assert [wake.holder for wake in wakes] == ["b"]
    assert await desk.says(ONLY, "b") is False


async def test_who_waited_for_a_permit_is_told_once_more_by_each_worker(desk, clock):
    told = []

    async def signal(holder):
        told.append(holder)

    wakes = Wakes(signal)
    watch = GrantWatch(desk.log, wakes)

    async def look(watch=watch):
        told.clear()
        await watch.once()
        await wakes.sent()
        return list(told)

    for holder in "abc":
        await desk.ask(ONE, holder)
    clock.at(10_000)
    assert await look() == []  # `a` never waited
    assert await desk.release("a") == ["b"]
    clock.at(11_999)
    assert await look() == []  # it has just been signalled
    clock.at(12_000)
    assert [await look(), await look()] == [["b"], []]
    assert await look(GrantWatch(desk.log, wakes)) == ["b"]
    assert await desk.release("b") == ["c"]
    clock.at(14_000)
    assert await look() == ["c"]
    clock.at(12_000 + 600_000)
    assert await look(GrantWatch(desk.log, wakes)) == []  # it has asked by itself since


async def test_a_job_that_is_delivered_again_is_not_skipped_for_its_own_sake(desk):
    """The claim of the delivery before is over: whoever had it is gone, or works for nothing."""
    assert await desk.says(ONLY, "job/triage/1/first") is True
    assert await desk.says(ONLY, "job/triage/11/first") is False
    assert await desk.says(ONLY, "job/triage/1/second") is True
    assert await desk.says(ONLY, "job/triage/1/first") is False
    assert await desk.says(ONLY, "job/triage/1/second") is True
    assert await desk.kinds(ONLY) == [
        "singleton_acquired",
        "singleton_skipped",
        "gate_abandoned",
        "singleton_acquired",
        "singleton_skipped",
    ]


async def test_a_job_that_is_delivered_again_frees_the_permit_that_it_had(desk):
    assert await desk.says(ONE, "job/triage/1/first") is True
    assert await desk.says(ONE, "job/triage/1/second") is True
    assert (await desk.ask(ONE, "job/triage/2/first")).position == 1
    third = await desk.ask(ONE, "job/triage/1/third")
    assert (third.position, [wake.holder for wake in third.wakes]) == (1, ["job/triage/2/first"])
    assert await desk.says(ONE, "job/triage/2/first") is True


async def test_a_job_that_is_delivered_again_finds_its_permit_among_many(desk):
    """Those of others expire sooner, and one is of a job whose number begins alike."""
    many = Concurrency(max=31)
    assert await desk.says(many, "job/triage/1/first", ttl_ms=9_000) is True
    for number in range(30):
        assert await desk.says(many, f"job/triage/1{number}/first", ttl_ms=1_000) is True
    assert await desk.says(many, "job/triage/1/second") is True
    assert (await desk.kinds(many))[-2:] == ["gate_abandoned", "concurrency_acquired"]
    assert (await desk.ask(many, "other")).verdict == "wait"

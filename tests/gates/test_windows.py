"""Rate limit and throttle, at both edges of their windows."""

from __future__ import annotations

import pytest

from harn_temporal.gates.models import RateLimit, Throttle

LIMIT = RateLimit(period_ms=1_000, max=2)
THROTTLE = Throttle(period_ms=1_000, max=2)


async def test_a_rate_limit_lets_max_through_and_skips_the_rest(desk):
    assert [await desk.says(LIMIT, holder) for holder in "abc"] == [True, True, False]
    assert await desk.kinds(LIMIT) == ["rate_limit_allowed"] * 2 + ["rate_limit_blocked"]


async def test_a_hit_counts_until_its_period_is_over_and_not_a_millisecond_longer(desk, clock):
    clock.at(0)
    assert await desk.says(LIMIT, "a")
    clock.at(400)
    assert await desk.says(LIMIT, "b")
    clock.at(999)
    skip = await desk.ask(LIMIT, "c")
    assert skip.detail == {
        "gate": "t@v1:k",
        "max": 2,
        "period_ms": 1_000,
        "free_at_ms": clock.now_ms + 1,
    }
    clock.at(1_000)
    assert await desk.says(LIMIT, "d")  # a's place
    assert not await desk.says(LIMIT, "e")
    clock.at(1_399)
    assert not await desk.says(LIMIT, "f")
    clock.at(1_400)
    assert await desk.says(LIMIT, "g")  # b's place
    clock.at(1_999)
    assert not await desk.says(LIMIT, "h")


async def test_who_is_skipped_takes_no_place(desk, clock):
    assert await desk.says(LIMIT, "a")
    assert await desk.says(LIMIT, "b")
    clock.at(999)
    assert [await desk.says(LIMIT, holder) for holder in "cde"] == [False] * 3
    clock.at(1_000)
    assert [await desk.says(LIMIT, holder) for holder in "fgh"] == [True, True, False]


async def test_a_rate_limit_says_again_what_it_said(desk, clock):
    answers = [await desk.ask(LIMIT, holder) for holder in "abc"]
    clock.at(5_000)
    assert [await desk.ask(LIMIT, holder) for holder in "abc"] == answers
    assert [await desk.says(LIMIT, holder) for holder in "def"] == [True, True, False]


@pytest.mark.parametrize("gate", [LIMIT, THROTTLE])
async def test_keys_do_not_share(desk, gate):
    assert [await desk.says(gate, f"{n}", n) for n in range(20)] == [True] * 20


async def test_a_clock_that_goes_back_gives_no_room(desk, clock):
    clock.at(1_000)
    assert await desk.says(LIMIT, "a")
    clock.at(0)
    assert await desk.says(LIMIT, "b")  # counts from 1000, as time does not go back
    clock.at(1_999)
    assert not await desk.says(LIMIT, "c")
    clock.at(2_000)
    assert await desk.says(LIMIT, "d")
    assert await desk.says(LIMIT, "e")


async def test_a_clock_that_goes_back_twice_gives_no_room_either(desk, clock):
    clock.at(1_000)
    assert await desk.says(LIMIT, "a")
    clock.at(0)
    assert await desk.says(LIMIT, "b")
    clock.at(2_000)
    assert await desk.says(LIMIT, "c")  # a's place
    clock.at(1_999)
    assert not await desk.says(LIMIT, "d")  # b came at 1000, whatever its clock said
    clock.at(2_000)
    assert await desk.says(LIMIT, "e")


async def test_a_throttle_gives_each_who_waits_a_turn_of_its_own(desk):
    said = [await desk.says(THROTTLE, f"{n}") for n in range(7)]
    assert said == [True, True, 1_000, 1_000, 2_000, 2_000, 3_000]


async def test_a_turn_comes_at_its_millisecond(desk, clock):
    clock.at(0)
    await desk.says(THROTTLE, "a")
    clock.at(300)
    await desk.says(THROTTLE, "b")
    assert await desk.says(THROTTLE, "c") == 1_000
    assert await desk.says(THROTTLE, "d") == 1_300
    clock.at(999)
    assert await desk.says(THROTTLE, "c") == 1_000
    clock.at(1_000)
    assert await desk.says(THROTTLE, "d") == 1_300
    assert await desk.says(THROTTLE, "c") is True
    clock.at(1_299)
    assert await desk.says(THROTTLE, "d") == 1_300
    clock.at(1_300)
    assert await desk.says(THROTTLE, "d") is True
    assert await desk.says(THROTTLE, "d") is True
    assert await desk.says(THROTTLE, "e") == 2_000
    assert (await desk.kinds(THROTTLE)).count("throttle_acquired") == 4


async def test_nobody_overtakes_who_is_due(desk, clock):
    for holder in "ab":
        await desk.says(THROTTLE, holder)
    assert await desk.says(THROTTLE, "c") == 1_000
    assert await desk.says(THROTTLE, "d") == 1_000
    clock.at(1_000)
    assert await desk.says(THROTTLE, "e") == 2_000
    assert await desk.says(THROTTLE, "c") is True
    assert await desk.says(THROTTLE, "d") is True


async def test_who_comes_late_to_its_turn_does_not_shorten_the_window(desk, clock):
    for holder in "ab":
        await desk.says(THROTTLE, holder)
    assert [await desk.says(THROTTLE, holder) for holder in "cdef"] == [1_000, 1_000, 2_000, 2_000]
    clock.at(1_020)
    assert await desk.says(THROTTLE, "c") is True
    assert await desk.says(THROTTLE, "d") is True
    clock.at(2_000)
    assert await desk.says(THROTTLE, "e") == 2_020  # a little more, and not to the end of the line
    assert await desk.says(THROTTLE, "g") == 3_000
    clock.at(2_020)
    assert await desk.says(THROTTLE, "e") is True


async def test_after_a_pause_of_everything_they_line_up_again(desk, clock):
    holders = [f"{n}" for n in range(12)]
    assert [await desk.says(THROTTLE, holder) for holder in holders[-1:]] == [True]
    waiting = [holder for holder in holders if await desk.says(THROTTLE, holder) is not True]
    assert len(waiting) == 10
    clock.at(60_000)
    await desk.reopen()
    granted = {}
    for _ in range(40):
        for holder in list(waiting):
            if await desk.says(THROTTLE, holder) is True:
                granted[holder] = desk.clock.now_ms
                waiting.remove(holder)
        clock.now_ms += 500
        if not waiting:
            break
    times = sorted(granted.values())
    assert len(times) == 10
    assert all(later - sooner >= 1_000 for sooner, later in zip(times, times[2:], strict=False))
    assert times[-1] - times[0] <= 5_000  # and no more slowly than the limit asks for
    asked = (await desk.kinds(THROTTLE)).count("throttle_wait")
    assert asked == 10 + 8  # when two had gone on, each of the others got one new turn


async def test_a_turn_that_is_given_back_goes_to_who_comes_next(desk, clock):
    said = [await desk.says(THROTTLE, f"{n}") for n in range(6)]
    assert said == [True, True, 1_000, 1_000, 2_000, 2_000]
    assert await desk.abandon("2") == []
    assert await desk.abandon("2") == []
    clock.at(10)
    assert await desk.says(THROTTLE, "next") == 1_000
    assert await desk.says(THROTTLE, "after") == 3_000
    await desk.abandon("4")
    clock.at(2_000)  # the turn that 4 gave back is over
    assert await desk.says(THROTTLE, "late") == 3_000


ONE = Throttle(period_ms=1_000, max=1)


async def test_a_turn_that_was_given_back_is_not_taken_while_the_window_is_full(desk, clock):
    assert [await desk.says(ONE, holder) for holder in "abc"] == [True, 1_000, 2_000]
    await desk.abandon("c")
    clock.at(1_500)
    assert await desk.says(ONE, "b") is True  # late: until 2500 there is no room
    assert await desk.says(ONE, "d") == 3_000


async def test_a_turn_that_was_given_back_and_is_over_is_forgotten(desk, clock):
    assert [await desk.says(ONE, holder) for holder in "abc"] == [True, 1_000, 2_000]
    await desk.abandon("c")

    def freed(reader):
        [gate] = reader.gates.named("t@v1:k")
        return reader.gates.freed(gate.gate)

    assert (await desk.log.query(freed))[0] == clock.now_ms + 2_000
    clock.at(2_000)
    assert await desk.says(ONE, "b") is True
    clock.at(1_999)
    assert await desk.log.query(freed) is None

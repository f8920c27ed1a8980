"""The circuit of a destination."""

from __future__ import annotations

from harn_temporal.gates.models import Singleton


async def fail(desk, count, holder="h"):
    return [await desk.tell(f"{holder}{n}", failed=True) for n in range(count)]


async def test_it_opens_at_the_fifth_failure_in_a_row(desk):
    assert await fail(desk, 4) == [None] * 4
    assert await desk.circuit("new") == "closed"
    assert await desk.tell("h4", failed=True) == "opened"
    assert await desk.circuit("new") == "open"


async def test_a_success_begins_the_count_anew(desk):
    await fail(desk, 4)
    assert await desk.tell("ok", failed=False) is None
    assert await fail(desk, 4, "g") == [None] * 4
    assert await desk.circuit("new") == "closed"


async def test_one_attempt_counts_once(desk):
    for _ in range(9):
        await desk.tell("h", 1, failed=True)
    assert await desk.circuit("new") == "closed"
    for attempt in range(2, 6):
        await desk.tell("h", attempt, failed=True)
    assert await desk.circuit("new") == "open"


async def test_it_is_open_for_a_minute_and_then_one_at_a_time_may_try(desk, clock):
    await fail(desk, 5)
    clock.at(59_999)
    assert await desk.circuit("a") == "open"
    clock.at(60_000)
    assert await desk.circuit("a") == "probe"
    assert await desk.circuit("a") == "probe"
    assert await desk.circuit("b") == "open"
    assert await desk.tell("a", failed=False) == "closed"
    assert [await desk.circuit(holder) for holder in "bc"] == ["closed", "closed"]


async def test_a_probe_that_fails_opens_it_again(desk, clock):
    await fail(desk, 5)
    clock.at(60_000)
    assert await desk.circuit("a") == "probe"
    clock.at(61_000)
    assert await desk.tell("a", failed=True) == "opened"
    clock.at(120_999)
    assert await desk.circuit("b") == "open"
    clock.at(121_000)
    assert await desk.circuit("b") == "probe"


async def test_a_probe_that_is_silent_makes_room_at_its_time(desk, clock):
    await fail(desk, 5)
    clock.at(60_000)
    assert await desk.circuit("a", 30_000) == "probe"
    clock.at(89_999)
    assert await desk.circuit("b") == "open"
    clock.at(90_000)
    assert await desk.circuit("b") == "probe"
    assert await desk.circuit("a") == "open"


async def test_a_probe_that_is_gone_makes_room(desk, clock):
    await fail(desk, 5)
    clock.at(60_000)
    assert await desk.circuit("a") == "probe"
    await desk.abandon("a")
    assert await desk.circuit("b") == "probe"


async def test_a_probe_that_leaves_one_gate_is_still_the_probe(desk, clock):
    await fail(desk, 5)
    clock.at(60_000)
    assert await desk.circuit("a") == "probe"
    await desk.ask(Singleton(), "a")
    [gate] = await desk.log.query(lambda reader: reader.gates.named("t@v1:k"))
    await desk.abandon("a", gate=gate)
    assert await desk.circuit("b") == "open"


async def test_a_probe_that_fails_where_the_clock_is_behind_opens_it_again(desk, clock):
    await fail(desk, 5)
    clock.at(60_000)
    assert await desk.circuit("a") == "probe"
    clock.at(59_999)
    assert await desk.tell("a", failed=True) == "opened"
    clock.at(119_998)
    assert await desk.circuit("b") == "open"
    clock.at(119_999)
    assert await desk.circuit("b") == "probe"


async def test_failures_of_those_that_began_before_do_not_keep_it_open(desk, clock):
    await fail(desk, 5)
    clock.at(59_999)
    assert await desk.tell("h0", 2, failed=True) is None
    clock.at(60_000)
    assert await desk.circuit("a") == "probe"


async def test_it_is_kept_in_the_store(desk, clock):
    await fail(desk, 5)
    await desk.reopen()
    assert await desk.circuit("new") == "open"
    await desk.log.rebuild()
    assert await desk.circuit("new") == "open"
    listed = await desk.log.query(lambda reader: reader.circuits.page())
    assert [(each.destination, each.failures) for each in listed] == [("a2a://host/agent", 5)]

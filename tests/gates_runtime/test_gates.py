"""Each gate on a real server: who goes on, who waits, who is skipped."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from functools import partial

import pytest
from prometheus_client import CollectorRegistry
from temporalio.service import RPCError

from harn_temporal.contracts import DispatchState
from harn_temporal.gates.leaving import abandon
from harn_temporal.headers import HOLDER
from harn_temporal.telemetry.process_metrics import ProcessMetrics
from harn_temporal.workflows.dispatch import DispatchWorkflow

QUICK = 'retry = { max = 3, backoff = "linear", delay_ms = 30 }'
LATE = 'retry = { max = 2, backoff = "linear", delay_ms = 3600000 }'


async def test_concurrency_lets_the_next_one_go_on_at_once(make_gated):
    gated = await make_gated("held", "concurrency = { max = 1 }")
    async with gated.worker():
        first = await gated.start(0)
        await gated.begun(0)
        others = [await gated.start(number) for number in (1, 2)]
        for handle in others:
            await gated.phase(handle, "gate_wait")
        for number in (0, 1, 2):
            gated.let_go(number)
        outcomes = await gated.outcomes([first, *others])
    assert [(each.status, each.result) for each in outcomes] == [
        ("succeeded", 0),
        ("succeeded", 1),
        ("succeeded", 2),
    ]
    assert Counter(await gated.kinds("concurrency")) == {
        "concurrency_acquired": 3,
        "concurrency_waiting": 2,
        "concurrency_released": 3,
    }


async def test_who_waits_goes_by_priority_and_then_by_arrival(make_gated):
    order = 'priority = { key = "event.provider_payload.raw.tier", order = ["gold", "silver"] }'
    gated = await make_gated("held", "concurrency = { max = 1 }", order)
    tiers = [None, "iron", "silver", "gold", None, "gold", "silver"]
    handles = []
    async with gated.worker():
        for number, tier in enumerate(tiers):
            handles.append(await gated.start(number, payload={"tier": tier}))
            if number == 0:
                await gated.begun(0)
            else:
                await gated.phase(handles[-1], "gate_wait")
        for number in range(len(tiers)):
            gated.let_go(number)
        outcomes = await gated.outcomes(handles)
    assert [each.result for each in outcomes] == list(range(7))
    [head] = await gated.log.topics("trigger.concurrency.")
    granted = [
        record.headers[HOLDER]
        for record in await gated.log.read(head.topic)
        if record.kind == "concurrency_acquired"
    ]
    numbers = {handle.id: number for number, handle in enumerate(handles)}
    assert [numbers[each] for each in granted] == [0, 3, 5, 2, 6, 1, 4]


async def test_a_dead_letter_gives_its_permits_back(make_gated):
    retry = 'retry = { max = 2, backoff = "linear", delay_ms = 30 }'
    gated = await make_gated("fails", retry, "concurrency = { max = 1 }", "singleton = {}")
    async with gated.worker():
        [first] = await gated.outcomes([await gated.start(0)])
        [second] = await gated.outcomes([await gated.start(1)])
    assert (first.status, first.attempt_count, second.status) == ("dlq", 2, "succeeded")


async def test_a_wait_shows_in_the_web_ui(make_gated):
    gated = await make_gated("held", "concurrency = { max = 1 }")
    async with gated.worker():
        first = await gated.start(0)
        await gated.begun(0)
        waiting = await gated.start(1)
        await gated.phase(waiting, "gate_wait")

        async def status():
            found = await waiting.describe()
            pairs = {pair.key.name: pair.value for pair in found.typed_search_attributes}
            return pairs["HarnStatus"] == "waiting"

        await gated.until(status)
        state = await waiting.query("state", result_type=DispatchState)
        assert state.until is not None
        details = await waiting.query("__temporal_workflow_metadata")
        assert "Waiting for concurrency gated@v1:_global, 1st of 1" in str(details)
        more = []
        for number in (2, 3):
            more.append(await gated.start(number))
            await gated.phase(more[-1], "gate_wait")
        details = await more[-1].query("__temporal_workflow_metadata")
        assert "Waiting for concurrency gated@v1:_global, 3rd of 3" in str(details)
        for number in range(4):
            gated.let_go(number)
        await gated.outcomes([first, waiting, *more])


@pytest.mark.parametrize(
    ("lines", "second"),
    [
        (["concurrency = { max = 1 }"], ("succeeded", 1)),
        (["singleton = {}"], ("skipped", None)),
    ],
)
async def test_a_long_retry_wait(make_gated, lines, second):
    """It gives the permit of concurrency back, and keeps that of a singleton."""
    gated = await make_gated("fails", LATE, *lines)
    async with gated.worker():
        first = await gated.start(0)
        await gated.phase(first, "retry_wait")
        [outcome] = await gated.outcomes([await gated.start(1)])
        assert (outcome.status, outcome.result) == second
        await first.cancel()
        [ended] = await gated.outcomes([first])
        assert (ended.status, ended.attempt_count) == ("cancelled", 1)
        [third] = await gated.outcomes([await gated.start(2)])
    assert (third.status, third.result) == ("succeeded", 2)


async def test_a_permit_that_was_taken_away_is_asked_for_again(make_gated):
    soon = 'retry = { max = 3, backoff = "linear", delay_ms = 1500 }'
    gated = await make_gated("fails_first", soon, "concurrency = { max = 1 }")
    async with gated.worker():
        first = await gated.start(0)
        await gated.phase(first, "retry_wait")
        await gated.log.transact(lambda tx: abandon(tx, first.id, reason="a test"))
        second = await gated.start(1)
        await gated.begun(1)
        await gated.phase(first, "gate_wait")
        assert not (gated.folder / "begun-0").exists()
        gated.let_go(1)
        gated.let_go(0)
        outcomes = await gated.outcomes([first, second])
    assert [(each.status, each.attempt_count) for each in outcomes] == [
        ("succeeded", 2),
        ("succeeded", 1),
    ]


async def test_a_handler_that_waits_gives_its_permits_back(make_gated):
    gated = await make_gated("waits", "concurrency = { max = 1 }", "singleton = {}")
    async with gated.worker():
        [first] = await gated.outcomes([await gated.start(0)])
        [second] = await gated.outcomes([await gated.start(1)])
    assert (first.status, second.status) == ("waiting", "succeeded")


async def test_a_rate_limit_skips_and_says_so(make_gated):
    gated = await make_gated("works", 'rate_limit = { period = "1h", max = 2 }')
    async with gated.worker():
        outcomes = [(await gated.outcomes([await gated.start(number)]))[0] for number in range(3)]
    assert [each.status for each in outcomes] == ["succeeded", "succeeded", "skipped"]
    skipped = (await gated.log.read("trigger.outbox"))[-1]
    assert skipped.kind == "dispatch_skipped"
    assert skipped.payload["skip_stage"] == "flow_control"
    assert skipped.payload["detail"]["gate"] == "gated@v1:_global"
    assert skipped.payload["detail"]["max"] == 2


async def test_a_throttle_spreads_what_it_lets_through(make_gated):
    gated = await make_gated("works", 'throttle = { period = "1s", max = 2 }')
    async with gated.worker():
        handles = [await gated.start(number) for number in range(5)]
        outcomes = await gated.outcomes(handles)
    assert [each.status for each in outcomes] == ["succeeded"] * 5
    starts = [
        record.occurred_at_ms
        for record in await gated.log.read((await gated.log.topics("trigger.throttle."))[0].topic)
        if record.kind == "throttle_acquired"
    ]
    assert len(starts) == 5
    assert all(late - early >= 1_000 for early, late in zip(starts, starts[2:], strict=False))


@pytest.mark.parametrize(("count", "sizes"), [(7, [7]), (10, [10]), (23, [3, 10, 10])])
async def test_a_batch_is_one_dispatch_of_its_members(make_gated, count, sizes):
    gated = await make_gated("members", 'batch = { size = 10, timeout = "2s" }')
    requests = [await gated.start(number) for number in range(count)]
    async with gated.worker():
        outcomes = await gated.outcomes(requests)
    roots = [each for each in outcomes if each.status == "succeeded"]
    assert sorted(len(each.result) for each in roots) == sizes
    assert sorted(number for each in roots for number in each.result) == list(range(count))
    assert Counter(each.status for each in outcomes) == Counter(
        succeeded=len(sizes), skipped=count - len(sizes)
    ) - Counter(skipped=0)


async def test_a_batch_that_is_replayed_brings_its_members_along(make_gated):
    gated = await make_gated("members", 'batch = { size = 2, timeout = "1h" }')
    others = [await gated.request(number) for number in (1, 2)]
    async with gated.worker():
        first = await gated.start(0, batch=others)
        await gated.phase(first, "gate_wait")
        outcomes = await gated.outcomes([first, await gated.start(3)])
    assert [each.status for each in outcomes] == ["succeeded", "skipped"]
    assert outcomes[0].result == [0, 1, 2, 3]


async def test_a_first_member_that_is_terminated_makes_way(make_gated):
    gated = await make_gated("members", 'batch = { size = 3, timeout = "1h" }')

    async def gathered():
        return await gated.kinds("batch")

    async def pumped(number):
        request = await gated.request(number)
        return gated.client.get_workflow_handle_for(
            DispatchWorkflow.run, f"dispatch/gated/gated/{request.event_id}"
        )

    async def under_way(handle):
        try:
            return await handle.describe()
        except RPCError:
            return None

    async with gated.worker(pump=True, sweep_interval=timedelta(seconds=0.2)):
        first = await pumped(0)
        await gated.until(gathered)
        await first.terminate()

        async def left():
            return "gate_abandoned" in await gated.kinds("batch")

        await gated.until(left)
        handles = [await pumped(number) for number in (1, 2, 3)]
        for handle in handles:
            await gated.until(partial(under_way, handle))
        outcomes = await gated.outcomes(handles)
    assert Counter(each.status for each in outcomes) == {"succeeded": 1, "skipped": 2}
    [members] = [each.result for each in outcomes if each.status == "succeeded"]
    assert sorted(members) == [1, 2, 3]


GATES = {
    "concurrency": "concurrency = { max = 1 }",
    "throttle": 'throttle = { period = "1h", max = 1 }',
    "debounce": 'debounce = { key = "event.kind", period = "1h" }',
    "batch": 'batch = { size = 10, timeout = "1h" }',
}


@pytest.mark.parametrize("gate", GATES)
async def test_cancelled_at_a_gate(make_gated, gate):
    gated = await make_gated("held", GATES[gate])
    async with gated.worker():
        first = await gated.start(0)
        if gate in {"concurrency", "throttle"}:
            await gated.begun(0)
        else:
            await gated.phase(first, "gate_wait")
        second = await gated.start(1)
        await gated.phase(second, "gate_wait")
        await second.cancel()
        [outcome] = await gated.outcomes([second])
        assert (outcome.status, outcome.attempt_count) == ("cancelled", 0)
        gates = await gated.log.query(lambda reader: reader.gates.page())
        assert [(each.kind, each.waiting) for each in gates] == [(gate, gate == "batch")]
        gated.let_go(0)
        await first.cancel()
        await gated.outcomes([first])
    ends = [r for r in await gated.log.read("trigger.outbox") if r.headers["event_id"]]
    assert [r.kind for r in ends if r.payload.get("error") == "cancelled"] != []


RESTARTED = {
    "gated": ("held", QUICK, "concurrency = { max = 1 }"),
    "throttle": ("works", 'throttle = { period = "1s", max = 1 }'),
    "debounce": (
        "works",
        'debounce = { key = "event.kind", period = "5s", max_wait = "6s" }',
    ),
    "batch": ("members", 'batch = { size = 10, timeout = "5s" }'),
}


async def test_a_worker_that_is_killed_with_waiting_dispatches_at_every_gate(make_gated):
    others = {name: each for name, each in RESTARTED.items() if name != "gated"}
    gated = await make_gated(*RESTARTED["gated"], others=others)
    handles = {name: [] for name in RESTARTED}
    async with gated.process() as process:
        for number in range(3):
            for name, started in handles.items():
                started.append(await gated.start(number, trigger=name, heartbeat_timeout_ms=1_000))
            if number == 0:
                await gated.begun(0)

        async def all_wait():
            kinds = Counter(
                [k for gate in (*others, "concurrency") for k in await gated.kinds(gate)]
            )
            return (
                kinds["debounce_seen"] == 3
                and kinds["batch_enqueued"] == 3
                and kinds["throttle_wait"] == 2
                and kinds["concurrency_waiting"] == 2
            )

        await gated.until(all_wait)
        process.kill()
        await process.wait()
    for number in range(3):
        gated.let_go(number)
    async with gated.worker():
        ended = {name: await gated.outcomes(each) for name, each in handles.items()}
    statuses = {name: Counter(each.status for each in found) for name, found in ended.items()}
    assert statuses["gated"] == statuses["throttle"] == {"succeeded": 3}
    assert statuses["debounce"] == statuses["batch"] == {"succeeded": 1, "skipped": 2}
    assert ended["gated"][0].attempt_count == 2
    assert [each.result for each in ended["batch"] if each.status == "succeeded"] == [[0, 1, 2]]
    kinds = await gated.kinds("debounce")
    assert kinds == ["debounce_seen"] * 3 + ["debounce_selected"]


async def test_never_more_than_max_in_three_processes(make_gated):
    """Counted by the handlers themselves, with one of three workers killed inside a handler."""
    gated = await make_gated("counted", QUICK, 'concurrency = { key = "event.kind", max = 2 }')
    async with gated.process() as one, gated.process() as two, gated.process() as three:
        handles = [await gated.start(number, heartbeat_timeout_ms=1_000) for number in range(20)]

        async def victim():
            return (gated.folder / "victim").exists()

        await gated.until(victim)
        pid = int((gated.folder / "victim").read_text())
        [holder] = [each for each in (one, two, three) if each.pid == pid]
        holder.kill()
        await holder.wait()
        outcomes = await gated.outcomes(handles)
    assert [each.status for each in outcomes] == ["succeeded"] * 20
    assert {each.attempt_count for each in outcomes} <= {1, 2}
    assert outcomes[5].attempt_count == 2
    counts = [int(line) for line in (gated.folder / "counts").read_text().split()]
    assert len(counts) >= 21
    assert max(counts) == 2


async def test_a_signal_that_is_lost_costs_time_only(make_gated, monkeypatch):
    monkeypatch.setattr("harn_temporal.gates.holding.RECHECK_MS", 1_000)
    gated = await make_gated("held", "concurrency = { max = 1 }")
    async with gated.worker():
        first = await gated.start(0)
        await gated.begun(0)
        second = await gated.start(1)
        await gated.phase(second, "gate_wait")
        monkeypatch.setattr(
            "harn_temporal.activities.gate_wakes.Wakes.send", lambda self, wakes: None
        )
        gated.let_go(0)
        gated.let_go(1)
        outcomes = await gated.outcomes([first, second])
    assert [each.status for each in outcomes] == ["succeeded", "succeeded"]


async def test_what_gates_do_is_counted(make_gated):
    gated = await make_gated(
        "works",
        'rate_limit = { period = "1h", max = 1 }',
        others={"slow": ("held", "concurrency = { max = 1 }")},
    )
    registry = CollectorRegistry()
    gated.log.observe(ProcessMetrics(registry).appended)
    async with gated.worker():
        await gated.outcomes([await gated.start(number) for number in range(3)])
        first = await gated.start(7, trigger="slow")
        await gated.begun(7)
        second = await gated.start(8, trigger="slow")
        await gated.phase(second, "gate_wait")
        for number in (7, 8):
            gated.let_go(number)
        await gated.outcomes([first, second])

    def counted(dimension, action):
        labels = {"dimension": dimension, "action": action}
        return registry.get_sample_value("harn_backpressure_events_total", labels)

    assert counted("rate_limit", "skip") == 2
    assert counted("concurrency", "wait") == 1

import asyncio
import json
import traceback
from pathlib import Path
from typing import Any

import pytest

import harn_temporal.testing as kit
from harn_temporal.errors import EventError, ManifestError, NotFoundError, UsageError
from harn_temporal.testing import AsyncWorkbench, FakeClock, Workbench, make_context, make_event


@pytest.fixture
def bench(folder: Path) -> Any:
    """In a `def` test no event loop runs, as in plain pytest."""
    with Workbench(folder / "harn.toml") as bench:
        yield bench


def deliver(bench: Any, kind: str, payload: Any = None, **changes: Any) -> Any:
    return bench.deliver(bench.event("github", kind, payload or {"n": 7}, **changes)).only


def test_success(bench: Any) -> None:
    result = deliver(bench, "fine", tenant_id="acme")
    result.assert_succeeded({"n": 7, "attempt": 1, "tenant": "acme"}, attempts=1)
    assert (result.trigger_id, result.binding_key) == ("fine", "fine@v1")
    assert (result.error, result.waited_ms) == (None, 0)


def test_every_event_passes_the_gates(tmp_path: Path) -> None:
    (tmp_path / "lib.py").write_text("def run(event):\n    return event.raw['n']\n")
    (tmp_path / "harn.toml").write_text(
        '[package]\nname = "gated"\n[[triggers]]\nid = "t"\nkind = "webhook"\n'
        'provider = "github"\nmatch = {}\nhandler = "run"\nconcurrency = { max = 1 }\n'
        'singleton = {}\nrate_limit = { period = "1h", max = 1 }\n'
    )
    with Workbench(tmp_path / "harn.toml") as bench:
        for number in (1, 2):
            deliver(bench, "push", {"n": number}).assert_succeeded(number, attempts=1)


def test_retries_skip_their_delays(bench: Any) -> None:
    before = bench.clock()
    result = deliver(bench, "flaky")
    result.assert_succeeded(3, attempts=3)
    assert [attempt.retry_in_ms for attempt in result.attempts] == [5_000, 300_000, None]
    assert [attempt.started_at_ms - before for attempt in result.attempts] == [0, 5_000, 305_000]
    assert result.waited_ms == bench.clock() - before == 305_000
    assert [str(attempt.exception) for attempt in result.attempts] == [
        "down at 1",
        "down at 2",
        "None",
    ]


def test_dead_letter(bench: Any) -> None:
    result = deliver(bench, "broken")
    result.assert_status("dlq", attempts=3, error="KeyError: 'missing'")
    assert result.attempts[-1].error_class == "handler_panic"
    [letter] = [record for record in bench.records("trigger.dlq") if record.kind == "dlq_entry"]
    assert len(letter.payload["retry_history"]) == 3


@pytest.mark.parametrize(
    ("kind", "status", "attempt", "error"),
    [("denies", "failed", "denied", "not today"), ("waits", "waiting", "waiting", "for the bank")],
)
def test_outcomes_that_are_not_tried_again(
    bench: Any, kind: str, status: Any, attempt: str, error: str
) -> None:
    result = deliver(bench, kind)
    result.assert_status(status, attempts=1, error=error)
    assert result.attempts[0].status == attempt


@pytest.mark.parametrize("kind", ["sleeps", "unheard"])
def test_a_timeout_of_the_test_replaces_the_manifests(folder: Path, kind: str) -> None:
    with Workbench(folder / "harn.toml", timeout="20ms") as bench:
        result = deliver(bench, kind)
    result.assert_status("dlq", error="did not end within 20 ms")
    assert {attempt.status for attempt in result.attempts} == {"timeout"}


def test_predicates(bench: Any) -> None:
    deliver(bench, "says_no").assert_status("skipped", attempts=0)
    deliver(bench, "unsure").assert_status("skipped", attempts=0, error="LookupError: no idea")
    deliver(bench, "cel").assert_succeeded(attempts=1)


def test_three_failures_open_the_breaker_of_a_predicate(bench: Any) -> None:
    for _ in range(3):
        deliver(bench, "unsure").assert_status("skipped", error="no idea")
    deliver(bench, "unsure").assert_status("skipped", error="circuit_open")
    bench.clock.advance("5m")
    deliver(bench, "unsure").assert_status("skipped", error="no idea")


def test_no_trigger_matches(bench: Any) -> None:
    delivery = bench.deliver(bench.event("github", "other"))
    assert (len(delivery), delivery.triggers) == (0, ())
    with pytest.raises(AssertionError, match="matches 0 triggers: none"):
        _ = delivery.only
    with pytest.raises(KeyError, match="it matches: none"):
        delivery["fine"]


def test_only_goes_past_match(bench: Any) -> None:
    event = bench.event("github", "other", {"n": 1})
    bench.deliver(event, only="fine").only.assert_succeeded()
    with pytest.raises(NotFoundError):
        bench.deliver(event, only="nobody")


def test_a_delivery_that_comes_twice(bench: Any) -> None:
    headers = {"x-github-delivery": "d-1"}
    deliver(bench, "fine", headers=headers).assert_succeeded()
    again = deliver(bench, "fine", headers=headers)
    again.assert_status("duplicate", attempts=0)
    bench.clock.advance("7d")
    deliver(bench, "fine", headers=headers).assert_succeeded()


def test_an_agent_is_stood_in_for(folder: Path) -> None:
    answers = iter([ConnectionError("away"), {"verdict": "ok"}])

    async def reviewer(event: Any) -> Any:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer | {"kind": event.kind}

    uri = "a2a://reviewer.example/triage"
    with Workbench(folder / "harn.toml", agents={uri: reviewer}) as bench:
        deliver(bench, "agent").assert_succeeded({"verdict": "ok", "kind": "agent"}, attempts=2)
    with Workbench(folder / "harn.toml") as bench, pytest.raises(UsageError, match="agents="):
        deliver(bench, "agent")


def test_a_job_lies_in_its_queue(bench: Any) -> None:
    result = deliver(bench, "queued")
    receipt = {"queue": "later", "job_event_id": 1, "response_topic": "worker.later.responses"}
    result.assert_succeeded(receipt)
    [job] = bench.records("worker.later")
    assert (job.kind, job.payload["event"]["id"]) == ("trigger_dispatch", result.event_id)


def test_records_are_the_dispatchs_own(bench: Any) -> None:
    deliver(bench, "fine")
    result = deliver(bench, "fine")
    assert [(record.topic, record.kind) for record in result.records] == [
        ("observability.action_graph", "action_graph_update"),
        ("observability.action_graph", "action_graph_update"),
        ("observability.action_graph", "action_graph_update"),
        ("trigger.attempts", "attempt_recorded"),
        ("trigger.inbox.envelopes", "event_ingested"),
        ("trigger.outbox", "dispatch_started"),
        ("trigger.outbox", "dispatch_succeeded"),
        ("triggers.events", "trigger_event"),
        ("triggers.lifecycle", "DispatchStarted"),
        ("triggers.lifecycle", "DispatchSucceeded"),
    ]
    assert {record.headers["event_id"] for record in result.records} == {result.event_id}


def test_a_failed_assertion_tells_the_story_and_shows_the_handlers_line(bench: Any) -> None:
    result = deliver(bench, "broken")
    with pytest.raises(AssertionError) as caught:
        result.assert_succeeded()
    assert str(caught.value).splitlines() == [
        "broken@v1: it ended as dlq, not succeeded",
        "  attempt 1 failed: KeyError: 'missing'; next in 1 s",
        "  attempt 2 failed: KeyError: 'missing'; next in 1 s",
        "  attempt 3 failed: KeyError: 'missing'",
    ]
    shown = "".join(traceback.format_exception(caught.value))
    assert 'return event.raw["missing"]' in shown


def test_other_assertions_fail_as_well(bench: Any) -> None:
    result = deliver(bench, "fine")
    with pytest.raises(AssertionError, match="gave another result"):
        result.assert_succeeded({"n": 8})
    with pytest.raises(AssertionError, match="took 1 attempts, not 2"):
        result.assert_succeeded(attempts=2)
    with pytest.raises(AssertionError, match="its error has no 'x': None"):
        result.assert_status("succeeded", error="x")


def test_workbenches_share_nothing(folder: Path) -> None:
    with Workbench(folder / "harn.toml") as one, Workbench(folder / "harn.toml") as other:
        deliver(one, "fine", headers={"x-github-delivery": "d"}).assert_succeeded()
        deliver(other, "fine", headers={"x-github-delivery": "d"}).assert_succeeded()
        deliver(other, "fine").assert_succeeded()
        assert (one.module("handlers").SEEN, other.module("handlers").SEEN) == ([1], [1, 1])
        assert one.module() is one.module("handlers")


async def test_in_an_async_test(folder: Path) -> None:
    async with AsyncWorkbench(folder / "harn.toml") as bench:
        event = bench.event("github", "flaky")
        (await bench.deliver(event)).only.assert_succeeded(3, attempts=3)
        assert len(await bench.records("trigger.attempts")) == 5
    with pytest.raises(UsageError, match="use AsyncWorkbench"), Workbench(folder / "harn.toml"):
        pass


def test_a_wrong_manifest_is_told_with_all_mistakes(tmp_path: Path) -> None:
    (tmp_path / "harn.toml").write_text('[package]\nname = "x"\n[[triggers]]\nid = "a"\nkin = 1\n')
    with pytest.raises(ManifestError) as caught:
        Workbench(tmp_path / "harn.toml")
    assert len(caught.value.problems) > 1


def test_events_from_files(tmp_path: Path) -> None:
    (tmp_path / "payload.json").write_text('{"n": 3}')
    made = make_event("github", "push", tmp_path / "payload.json", headers={"X-Secret": "s"})
    assert (made.raw, made.headers["x-secret"]) == ({"n": 3}, "[redacted]")
    (tmp_path / "event.json").write_text(json.dumps(made.to_json()))
    assert kit.read_event(tmp_path / "event.json") == made
    with pytest.raises(EventError, match="cannot read"):
        kit.read_event(tmp_path / "nothing.json")
    (tmp_path / "bad.json").write_text("{")
    with pytest.raises(EventError, match=r"bad\.json is"):
        make_event("github", "push", tmp_path / "bad.json")


def test_contexts() -> None:
    event = make_event("github", "push", tenant_id="acme")
    context = make_context(event, trigger_id="a", attempt=2)
    assert (context.event_id, context.tenant_id) == (event.id, "acme")
    assert (context.binding_key, context.attempt, context.max_attempts) == ("a@v1", 2, 7)
    assert not context.cancelled
    kit.cancel(context)
    assert context.cancelled


def test_the_clock_goes_forward_only() -> None:
    clock = FakeClock()
    clock.advance("1h")
    clock.advance(5)
    assert clock() - FakeClock()() == 3_600_005
    assert repr(clock) == "<FakeClock 2026-01-01T01:00:00.005Z>"
    with pytest.raises(ValueError, match="forward only"):
        clock.advance(-1)


def test_what_is_public() -> None:
    assert kit.__all__ == sorted(kit.__all__)
    assert [name for name in kit.__all__ if not hasattr(kit, name)] == []
    assert asyncio.iscoroutinefunction(AsyncWorkbench.deliver)

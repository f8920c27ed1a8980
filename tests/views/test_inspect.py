from typing import Any

import pytest

from harn_temporal.bindings import HandlerTarget
from harn_temporal.eventlog.log import Append
from harn_temporal.headers import PACKAGE, WORKFLOW_ID
from harn_temporal.ingestion import ingest
from harn_temporal.naming import pump_consumer
from harn_temporal.registry import register

ENVELOPES = "trigger.inbox.envelopes"


def fill(world: Any) -> None:
    """Two that succeeded, one in an attempt, one in its retry wait, one dead, two in the inbox."""

    async def work(log: Any) -> None:
        for _ in range(2):
            await world.dispatch(log, world.event(), "fine")
        await world.dispatch(log, world.event(), begun=True)
        await world.dispatch(log, world.event(), "failed")
        await world.dispatch(log, world.event(), "failed", "dead")
        bindings = await register(log, "demo", [world.binding()])
        await ingest(log, bindings, world.event(), package="demo")
        await ingest(log, bindings, world.event(tenant_id="acme"), package="demo")
        await log.transact(lambda tx: tx.ack(ENVELOPES, pump_consumer("demo"), 0))

    world.fill(work)


def test_the_state_in_one_view(world: Any) -> None:
    fill(world)
    found = world.json("inspect")
    assert found["dispatcher"] == {
        "in_flight": 1,
        "retry_queue_depth": 1,
        "dlq_depth": 1,
        "admitted": 0,
        "waiting": 2,
        "lost": 0,
    }
    assert found["bindings"] == [
        {
            "binding_key": "triage@v1",
            "package": "demo",
            "state": "active",
            "provider": "github",
            "kind": "webhook",
            "handler_kind": "local",
            "changed_at": "2026-01-01T00:00:00.000Z",
        }
    ]
    [pump] = found["pumps"]
    assert pump["oldest_waiting_age_ms"] > 0
    assert {**pump, "oldest_waiting_age_ms": 0} == {
        "package": "demo",
        "alive": False,
        "seen_at": "2026-01-01T00:00:00.000Z",
        "backlog": 2,
        "oldest_waiting_age_ms": 0,
        "outstanding": 0,
        "cursors": [
            {"topic": f"tenant.acme.{ENVELOPES}", "cursor": 0, "last_id": 1},
            {"topic": ENVELOPES, "cursor": 0, "last_id": 1},
        ],
    }
    topics = {each["topic"]: each["last_id"] for each in found["topics"]}
    assert (topics["trigger.attempts"], topics["trigger.dlq"]) == (7, 2)
    assert (found["queues"], found["skipped_records"]) == ([], 0)


def test_for_people(world: Any) -> None:
    fill(world)
    code, out, _ = world.run("inspect")
    assert code == 0
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert {"in flight 1", "retry queue 1", "dead letters 1"} <= set(lines)
    assert "waiting 2 envelopes that no dispatch was started for" in lines
    assert "triage@v1 │ active │ demo │ github webhook │ local".replace("│ ", "") in lines


def test_dispatches_that_temporal_has_lost_until_they_are_recovered(world: Any) -> None:
    event = world.event()

    async def lose(log: Any) -> None:
        bindings = await register(log, "demo", [world.binding()])
        [taken] = await ingest(log, bindings, event, package="demo")
        headers = {PACKAGE: "demo", WORKFLOW_ID: taken.workflow_id}
        place = {"topic": ENVELOPES, "event_log_id": 1}
        for kind in ("pump_admitted", "dispatch_lost"):
            await log.append([Append("orchestrator.lifecycle", kind, place, headers)])

    async def recover(log: Any) -> None:
        [envelope] = await log.read(ENVELOPES)
        again = Append(ENVELOPES, envelope.kind, envelope.payload, dict(envelope.headers))
        await log.append([again])

    world.fill(lose)
    nothing = dict.fromkeys(("in_flight", "retry_queue_depth", "dlq_depth", "admitted"), 0)
    assert world.json("inspect")["dispatcher"] == nothing | {"waiting": 0, "lost": 1}
    lines = [" ".join(line.split()) for line in world.run("inspect")[1].splitlines()]
    assert "lost 1; see `recover`" in lines
    assert "\nharn_dispatcher_lost 1.0\n" in world.run("metrics")[1]

    world.fill(recover)
    assert world.json("inspect")["dispatcher"]["lost"] == 0
    assert not [line for line in world.run("inspect")[1].splitlines() if line.startswith("lost")]
    assert "\nharn_dispatcher_lost 0.0\n" in world.run("metrics")[1]


def test_bindings_that_are_no_longer_in_use_are_left_out(world: Any) -> None:
    async def work(log: Any) -> None:
        await register(log, "demo", [world.binding("old")])
        await register(log, "demo", [world.binding("new")])

    world.fill(work)
    assert [each["binding_key"] for each in world.json("inspect")["bindings"]] == ["new@v1"]


def test_a_resolved_dead_letter_and_a_finished_retry_count_no_more(world: Any) -> None:
    event = world.event()

    async def work(log: Any) -> None:
        await world.dispatch(log, event, "failed", "dead")
        [record] = [r for r in await log.read("trigger.dlq") if r.kind == "dlq_entry"]
        await log.append(
            [Append("trigger.dlq", "dlq_entry", record.payload | {"state": "resolved"})]
        )

    world.fill(work)
    figures = world.json("inspect")["dispatcher"]
    assert (figures["dlq_depth"], figures["retry_queue_depth"], figures["in_flight"]) == (0, 0, 0)


def test_jobs_of_a_queue_are_seen(world: Any) -> None:
    from harn_temporal.queue.enqueuing import enqueue
    from harn_temporal.queue.models import NewJob

    async def work(log: Any) -> None:
        await register(
            log, "demo", [world.binding(handler=HandlerTarget(kind="worker", uri="worker://q"))]
        )
        job = NewJob(
            queue="q", trigger_id="triage", binding_key="triage@v1", event=world.event().to_json()
        )
        await log.transact(lambda tx: enqueue(tx, [job]))

    world.fill(work)
    [queue] = world.json("inspect")["queues"]
    assert (queue["queue"], queue["ready"], queue["in_flight"]) == ("q", 1, 0)


def test_nothing_is_read_from_topics(world: Any) -> None:
    """The cost must not grow with the log, so no record may be looked at."""
    from harn_temporal.eventlog.transaction import StoreReader
    from harn_temporal.inspection.overview import overview

    fill(world)
    read: list[str] = []

    whole = StoreReader.read

    def noted(reader: Any, topic: str, *rest: Any) -> Any:
        read.append(topic)
        return whole(reader, topic, *rest)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(StoreReader, "read", noted)
        world.fill(overview)
    assert read == []


def test_without_a_store(world: Any) -> None:
    code, out, err = world.run("inspect")
    assert (code, out) == (3, "")
    assert "there is no EventLog at" in err


def test_doctor_shows_the_figures_beside_the_registry(world: Any) -> None:
    import json

    fill(world)
    _, out, _ = world.run("doctor", "--json")
    checks = {each["name"]: each["found"] for each in json.loads(out)["checks"]}
    assert checks["registry"] == "1 active: triage@v1"
    assert checks["dispatcher"] == (
        "1 in flight, 1 in the retry queue, 1 in the DLQ, 2 waiting in the inbox"
    )

"""What the store tells: gauges of now, and counters of all that was ever appended."""

from __future__ import annotations

import pytest
from prometheus_client.parser import text_string_to_metric_families

from harn_temporal.bindings import Binding, HandlerTarget
from harn_temporal.contracts import AttemptOutcome, DispatchRequest
from harn_temporal.dispatch_records import ended, started
from harn_temporal.eventlog import topics
from harn_temporal.eventlog.records import Append
from harn_temporal.events import new_event
from harn_temporal.headers import PACKAGE, READMITTED_FROM, REPLAY, WORKFLOW_ID
from harn_temporal.queue.claiming import claim
from harn_temporal.queue.enqueuing import enqueue
from harn_temporal.queue.models import ClaimOrder, NewJob, Settlement
from harn_temporal.queue.settling import settle
from harn_temporal.registry import register
from harn_temporal.scheduler import read_policy
from harn_temporal.telemetry.exposition import store_exposition
from harn_temporal.telemetry.store_metrics import MOST_KEYS
from harn_temporal.telemetry.topic_labels import topic_label

LIB = """
def fine(event):
    return 1
"""
FAIR, _ = read_policy({"HARN_SCHEDULER_STRATEGY": "drr", "HARN_SCHEDULER_STARVATION_AGE_MS": "0"})


@pytest.fixture
def package(make_package, trigger):
    return make_package(LIB, trigger("fine", "handlers::fine"))


async def exposed(log, policy=FAIR):
    text = (await store_exposition(log, policy)).decode()
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def value(found, name, **labels):
    return found.get((name, tuple(sorted(labels.items()))))


def job(tenant):
    event = new_event(provider="shop", kind="queued", payload={}, tenant_id=tenant)
    return NewJob(
        queue="triage", trigger_id="queued", binding_key="queued@v1", event=event.to_json()
    )


async def requested(package):
    """A dispatch whose envelope is in the log, and of which nothing has happened yet."""
    event, [taken] = await package.ingest("fine")
    bindings = await register(package.log, "demo", package.manifest.bindings)
    request = DispatchRequest(
        store_id=package.log.store_id,
        binding=bindings[0],
        event_id=event.id,
        trace_id=event.trace_id,
        address=taken.address,
        event=event,
    )
    return request, taken.workflow_id


async def test_counters_are_of_all_that_was_appended(package, log):
    request, workflow_id = await requested(package)
    await package.ingest("fine")
    again = AttemptOutcome(attempt=1, status="failed", error="no", retry_in_ms=9)
    dead = AttemptOutcome(attempt=2, status="failed", error="no", final="dlq")
    told = {"workflow_id": workflow_id, "now_ms": 5}
    await log.append(started(request, 1, **told))
    await log.append(ended(request, again, started_at_ms=1, **told))

    waiting = await exposed(log)
    await log.append(ended(request, dead, started_at_ms=1, **told), key="once")
    await log.append(ended(request, dead, started_at_ms=1, **told), key="once")
    found = await exposed(log)

    assert value(waiting, "harn_dispatcher_retry_queue_depth") == 1
    assert value(found, "harn_dispatcher_retry_queue_depth") == 0
    assert value(found, "harn_trigger_received_total", trigger_id="fine", provider="shop") == 2
    assert value(found, "harn_trigger_retries_total", trigger_id="fine", attempt="2") == 1
    assert value(found, "harn_trigger_dlq_total", trigger_id="fine", reason="retry_exhausted") == 1
    outcome = {"trigger_id": "fine", "handler_kind": "local", "outcome": "dlq"}
    assert value(found, "harn_trigger_dispatched_total", **outcome) == 1
    assert value(found, "harn_dispatcher_dlq_depth") == 1


async def test_a_rebuild_counts_the_same(package, log):
    await package.ingest("fine")
    before = await exposed(log)
    await log.rebuild()
    assert value(await exposed(log), "harn_trigger_received_total", trigger_id="fine",
                 provider="shop") == 1  # fmt: skip
    assert {name for name, _ in before} == {name for name, _ in await exposed(log)}


@pytest.mark.parametrize("header", [REPLAY, READMITTED_FROM])
async def test_an_event_that_comes_again_was_received_once(package, log, header):
    await package.ingest("fine")
    [envelope] = await log.read(topics.INBOX_ENVELOPES)
    again = dict(envelope.headers) | {header: "1"}
    await log.append([Append(envelope.topic, envelope.kind, envelope.payload, again)])
    harns = {name: text for name, text in envelope.headers.items() if name != PACKAGE}
    await log.append([Append(envelope.topic, envelope.kind, envelope.payload, harns)])
    found = await exposed(log)
    assert value(found, "harn_trigger_received_total", trigger_id="fine", provider="shop") == 1


async def test_a_trigger_that_is_gone_has_no_counters(package, log):
    await package.ingest("fine")
    other = Binding(
        trigger_id="other",
        package="demo",
        kind="webhook",
        provider="shop",
        events=("other",),
        handler=HandlerTarget(kind="local", uri="handlers::fine"),
        fingerprint="other",
    )
    await register(log, "demo", [other])
    found = await exposed(log)
    assert [labels for _, labels in found if ("trigger_id", "fine") in labels] == []


async def test_the_backlog_and_its_age(package, log):
    await package.ingest("fine")
    await package.ingest("fine")
    [envelope, _] = await log.read(topics.INBOX_ENVELOPES)
    headers = {PACKAGE: "demo", "trigger_id": "fine", "event_id": "old"}
    hour_ago = envelope.occurred_at_ms - 3_600_000
    await log.append([Append(envelope.topic, envelope.kind, {}, headers, hour_ago)])
    found = await exposed(log)
    assert value(found, "harn_orchestrator_pump_backlog", package="demo") == 3
    age_s = value(found, "harn_trigger_oldest_pending_age_seconds", package="demo")
    assert 3600 <= age_s < 3660
    assert value(found, "harn_orchestrator_pump_outstanding", package="demo") == 0


async def test_dispatches_that_temporal_has_lost(package, log):
    _, [taken] = await package.ingest("fine")
    headers = {PACKAGE: "demo", WORKFLOW_ID: taken.workflow_id}
    for kind in ("pump_admitted", "dispatch_lost"):
        place = {"topic": topics.INBOX_ENVELOPES, "event_log_id": 1}
        await log.append([Append(topics.ORCHESTRATOR_LIFECYCLE, kind, place, headers)])
    lost = await exposed(log)
    [envelope] = await log.read(topics.INBOX_ENVELOPES)
    again = Append(envelope.topic, envelope.kind, envelope.payload, dict(envelope.headers))
    await log.append([again])

    assert value(lost, "harn_dispatcher_lost") == 1
    assert value(lost, "harn_orchestrator_pump_outstanding", package="demo") == 0
    assert value(await exposed(log), "harn_dispatcher_lost") == 0


async def test_a_key_without_jobs_has_no_series(log):
    await log.transact(lambda tx: enqueue(tx, [job("acme"), job("beta"), job("beta")]))
    order = ClaimOrder(queue="triage", consumer_id="here", limit=1)
    taken = await log.transact(lambda tx: claim(tx, order, FAIR))
    during = await exposed(log)
    acked = [
        Settlement(job_event_id=each.job_event_id, claim_id=each.claim_id, error="done", ack=True)
        for each in taken.claims
    ]
    await log.transact(lambda tx: settle(tx, "triage", "here", acked))
    after = await exposed(log)

    acme, beta = (
        {"queue": "triage", "fairness_dimension": "tenant", "fairness_key": key}
        for key in ("acme", "beta")
    )
    assert [claimed.scheduling.fairness_key for claimed in taken.claims] == ["acme"]
    assert value(during, "harn_scheduler_selections_total", **acme) == 1
    assert value(during, "harn_scheduler_deferrals_total", **acme) == 0
    assert value(during, "harn_scheduler_deficit", **acme) == 0
    assert value(during, "harn_scheduler_deficit", **beta) == 1
    assert value(during, "harn_scheduler_oldest_eligible_age_seconds", **acme) == 0
    assert 0 <= value(during, "harn_scheduler_oldest_eligible_age_seconds", **beta) < 60
    promotions = "harn_scheduler_starvation_promotions_total"
    everybody = {"queue": "triage", "fairness_dimension": "tenant", "fairness_key": ""}
    assert value(during, promotions, **everybody) == 0
    assert value(during, "harn_worker_queue_depth", queue="triage") == 2
    assert value(during, "harn_worker_queue_in_flight", queue="triage") == 1
    assert [labels for _, labels in after if ("fairness_key", "acme") in labels] == []
    assert value(after, "harn_scheduler_deficit", **beta) == 1
    assert value(after, "harn_worker_queue_in_flight", queue="triage") == 0


async def test_a_claim_that_expired_is_ready_again(log):
    await log.transact(lambda tx: enqueue(tx, [job("acme")]))
    order = ClaimOrder(queue="triage", consumer_id="here", ttl_ms=1)
    await log.transact(lambda tx: claim(tx, order, FAIR))

    def look(reader):
        if reader.queues.figures("triage").in_flight:
            return None
        return reader.queues.busy_keys("triage", "tenant", 10)

    found = None
    while found is None:
        found = await log.query(look)
    ([key], count) = found
    assert (key.key, key.in_flight, key.ready, count) == ("acme", 0, 1, 1)
    assert key.oldest_ready_at_ms is not None


async def test_many_keys_leave_a_bounded_number_of_series(log):
    keys = MOST_KEYS + 50
    jobs = [job(f"tenant-{number:04}") for number in range(keys)]
    await log.transact(lambda tx: enqueue(tx, jobs))
    found = await exposed(log)
    listed = [labels for name, labels in found if name == "harn_scheduler_deficit"]
    assert len(listed) == MOST_KEYS
    rest = {"queue": "triage", "fairness_dimension": "tenant"}
    assert value(found, "harn_scheduler_unlisted_keys", **rest) == 50
    assert value(found, "harn_worker_queue_depth", queue="triage") == keys


async def test_busy_keys_are_as_all_keys_say(log):
    await log.transact(lambda tx: enqueue(tx, [job("a"), job("b"), job("b"), job("c")]))
    order = ClaimOrder(queue="triage", consumer_id="here", limit=2)
    await log.transact(lambda tx: claim(tx, order, FAIR))

    def look(reader):
        keys, count = reader.queues.busy_keys("triage", "tenant", 10)
        return (
            sorted(keys, key=lambda each: each.key),
            count,
            reader.queues.keys("triage", "tenant"),
        )

    busy, count, everything = await log.query(look)
    assert busy == everything
    assert count == len(everything) == 3


def test_topics_as_labels_are_few():
    assert topic_label("trigger.outbox") == "trigger.outbox"
    assert topic_label("tenant.acme.trigger.outbox") == "trigger.outbox"
    assert topic_label("worker.triage") == "worker.*.jobs"
    assert topic_label("worker.triage.claims") == "worker.*.claims"
    assert topic_label("worker.queues") == "worker.queues"
    assert topic_label("trigger.concurrency.by-tenant") == "trigger.concurrency.*"
    assert topic_label("somebody.elses") == "other"


async def test_the_command_reads_the_store_in_a_fresh_process(package, log, program):
    await package.ingest("fine")
    foreign = Append(topics.TRIGGER_ATTEMPTS, "retry_scheduled", "no object", {})
    await log.append([foreign])
    done = program("metrics")
    assert (done.returncode, done.stderr) == (0, "")
    families = {each.name: each for each in text_string_to_metric_families(done.stdout)}
    [received] = families["harn_trigger_received"].samples
    assert (received.labels, received.value) == ({"trigger_id": "fine", "provider": "shop"}, 1)
    [backlog] = families["harn_orchestrator_pump_backlog"].samples
    assert (backlog.labels, backlog.value) == ({"package": "demo"}, 1)
    assert "harn_trigger_inflight" not in families


def test_the_command_says_where_there_is_no_store(package, program, tmp_path):
    done = program("metrics", "--state-dir", str(tmp_path / "nowhere"))
    assert (done.returncode, done.stdout) == (3, "")
    assert "there is no EventLog" in done.stderr

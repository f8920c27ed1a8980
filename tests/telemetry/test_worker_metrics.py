"""The metrics of a worker, by value, after it has dispatched real events."""

from __future__ import annotations

import asyncio
import socket
import urllib.request
from dataclasses import replace

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from harn_temporal.a2a.metrics import observe_hop
from harn_temporal.cli.metrics_options import MetricsAddress
from harn_temporal.cli.serving_metrics import ServedMetrics
from harn_temporal.errors import StoreUnavailableError, UsageError
from harn_temporal.eventlog.records import Record
from harn_temporal.pump_figures import PumpFigures
from harn_temporal.queue.claiming import claim
from harn_temporal.queue.models import ClaimOrder
from harn_temporal.scheduler import read_policy
from harn_temporal.scheduler_figures import Series
from harn_temporal.telemetry.collectors import (
    MOST_SCHEDULER_SERIES,
    StoreCollector,
    _latest,
)
from harn_temporal.telemetry.endpoint import served
from harn_temporal.telemetry.families import FAMILIES, Source
from harn_temporal.telemetry.process_metrics import ProcessMetrics
from harn_temporal.temporal.connect import Connection, TemporalOptions, connect
from harn_temporal.worker import running_worker

LIB = """
import asyncio
from pathlib import Path

HERE = Path(__file__).parent


def fine(event):
    return event.raw["n"]


def broken(event):
    raise ValueError("no")


async def slow(event):
    (HERE / "begun").touch()
    while not (HERE / "go").exists():
        await asyncio.sleep(0.01)
"""
RETRY = 'retry = { max = 2, backoff = "linear", delay_ms = 40 }'


@pytest.fixture
def package(make_package, trigger):
    return make_package(
        LIB,
        trigger("fine", "handlers::fine", 'when = "event.provider_payload.raw.n == 1"'),
        trigger("broken", "handlers::broken", RETRY),
        trigger("slow", "handlers::slow"),
        trigger("queued", "worker://triage"),
    )


async def samples(url):
    """Every sample of a scrape, by name and labels."""
    text = await asyncio.to_thread(lambda: urllib.request.urlopen(url).read().decode())
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def value(found, name, **labels):
    return found[name, tuple(sorted(labels.items()))]


def life(trigger_id, status):
    return {
        "trigger_id": trigger_id,
        "binding_key": f"{trigger_id}@v1",
        "provider": "shop",
        "status": status,
    }


async def test_every_family_of_a_worker_has_its_value(temporal_address, package, log, until, ended):
    seen = ServedMetrics(MetricsAddress("127.0.0.1", 0))
    observers = seen.observing(log)
    options = TemporalOptions(temporal_address)
    async with (
        connect(options, package.folder, measured=True) as connection,
        running_worker(connection.client, log, package.manifest, observers=observers) as worker,
    ):
        with seen.serving(worker, log, connection) as url:
            await package.ingest("fine", dedupe_key="once")
            await package.ingest("fine", dedupe_key="once")
            await package.ingest("fine", payload={"n": 2})
            await package.ingest("broken")
            await package.ingest("queued", tenant_id="acme")
            await package.ingest("slow")
            await until(lambda: _exists(package.folder / "begun"))
            await ended(4)
            taken = await _claim(log)
            starved = replace(taken.claims[0].scheduling, decision="starvation-deadline")
            claims = (*taken.claims, replace(taken.claims[0], scheduling=starved))
            told = taken.model_copy(update={"claims": claims, "deferred_keys": ("beta",)})
            worker.scheduler.count("triage", "tenant", told)
            observe_hop("a2a://reviewer/review", "completed", 0.2)
            during = await samples(url)
            (package.folder / "go").touch()
            await ended(5)
            after = await samples(url)

    got = during
    assert value(got, "harn_trigger_received_total", trigger_id="fine", provider="shop") == 2
    assert value(got, "harn_trigger_received_total", trigger_id="broken", provider="shop") == 1
    deduped = value(got, "harn_trigger_deduped_total", trigger_id="fine", reason="inbox_duplicate")
    assert deduped >= 1
    evaluations = "harn_trigger_predicate_evaluations_total"
    assert value(got, evaluations, trigger_id="fine", result="true") == 1
    assert value(got, evaluations, trigger_id="fine", result="false") == 1
    dispatched = "harn_trigger_dispatched_total"
    for trigger_id, kind, outcome in (
        ("fine", "local", "succeeded"),
        ("fine", "local", "skipped"),
        ("broken", "local", "dlq"),
        ("queued", "worker", "succeeded"),
    ):
        labels = {"trigger_id": trigger_id, "handler_kind": kind, "outcome": outcome}
        assert value(got, dispatched, **labels) == 1
    assert value(got, "harn_trigger_retries_total", trigger_id="broken", attempt="2") == 1
    assert value(got, "harn_trigger_dlq_total", trigger_id="broken", reason="retry_exhausted") == 1
    assert value(got, "harn_trigger_inflight", trigger_id="slow") == 1
    assert not any(name == "harn_trigger_inflight" for name, _ in after)

    for name, trigger_id, status, count in (
        ("webhook_accepted_to_queue_append", "fine", "admitted", 2),
        ("queue_age_at_dispatch_admission", "fine", "admitted", 2),
        ("queue_age_at_dispatch_start", "broken", "started", 1),
        ("dispatch_runtime", "broken", "failed", 2),
        ("dispatch_runtime", "fine", "success", 1),
        ("retry_delay", "broken", "scheduled", 1),
        ("accepted_to_dlq", "broken", "retry_exhausted", 1),
    ):
        labels = life(trigger_id, status)
        assert value(got, f"harn_trigger_{name}_seconds_count", **labels) == count, name
        assert 0 <= value(got, f"harn_trigger_{name}_seconds_sum", **labels) < 60, name
    delay = value(got, "harn_trigger_retry_delay_seconds_sum", **life("broken", "scheduled"))
    assert delay == 0.04
    to_dlq = value(
        got, "harn_trigger_accepted_to_dlq_seconds_sum", **life("broken", "retry_exhausted")
    )
    assert to_dlq >= delay
    runtime = value(after, "harn_trigger_dispatch_runtime_seconds_count", **life("slow", "success"))
    assert runtime == 1

    topic = "trigger.inbox.envelopes"
    assert value(got, "harn_orchestrator_pump_admission_delay_seconds_count", topic=topic) == 5
    append = "harn_event_log_append_duration_seconds_count"
    assert value(got, append, topic=topic) == 5
    assert value(got, append, topic="worker.*.jobs") == 1
    assert value(got, append, topic="worker.*.claims") == 1
    assert value(got, "harn_worker_queue_claim_age_seconds_count", queue="triage") == 1

    key = {"queue": "triage", "fairness_dimension": "tenant", "fairness_key": "acme"}
    assert value(got, "harn_scheduler_selections_total", **key) == 2
    assert value(got, "harn_scheduler_starvation_promotions_total", **key) == 1
    beta = key | {"fairness_key": "beta"}
    assert value(got, "harn_scheduler_deferrals_total", **beta) == 1
    target = "a2a://reviewer/review"
    assert value(got, "harn_a2a_hops_total", target=target, outcome="completed") >= 1
    assert value(got, "harn_a2a_hop_duration_seconds_sum", target=target) >= 0.2

    assert value(got, "harn_orchestrator_pump_running") == 1
    assert value(got, "harn_orchestrator_pump_outstanding", package="demo") == 1
    assert value(after, "harn_orchestrator_pump_outstanding", package="demo") == 0
    assert value(got, "harn_dispatcher_in_flight") == 1
    assert value(got, "harn_dispatcher_dlq_depth") == 1
    assert value(got, "harn_worker_queue_in_flight", queue="triage") == 1
    assert value(got, "harn_worker_queue_depth", queue="triage") == 0
    assert value(got, "harn_metrics_store_read_failed") == 0

    of_the_sdk = {name for name, _ in got if name.startswith("temporal_")}
    assert "temporal_activity_execution_latency_seconds_count" in of_the_sdk
    assert "temporal_request_total" in of_the_sdk


async def test_a_worker_without_the_pump_exports_nothing_of_the_store(log):
    loop = asyncio.get_running_loop()
    pump = PumpFigures(max_outstanding=64)
    collector = StoreCollector(log, loop, pump, read_policy({})[0])
    registry = CollectorRegistry()
    registry.register(collector)
    of_the_store = {each.name for each in FAMILIES if each.source is Source.STORE}
    with served(registry, "127.0.0.1", 0) as url:
        without = {name for name, _ in await samples(url)}
        pump.running = True
        with_it = {name for name, _ in await samples(url)}
    assert without == {"harn_metrics_store_read_failed"}
    assert "harn_dispatcher_dlq_depth" in with_it & of_the_store


async def test_a_store_that_cannot_be_read_is_told_and_hides_nothing_else():
    class Away:
        async def query(self, work):
            raise StoreUnavailableError("it is away")

    pump = PumpFigures(max_outstanding=64, running=True)
    registry = CollectorRegistry()
    collector = StoreCollector(Away(), asyncio.get_running_loop(), pump, read_policy({})[0])
    registry.register(collector)
    with served(registry, "127.0.0.1", 0) as url:
        found = await samples(url)
    assert found == {("harn_metrics_store_read_failed", ()): 1}


async def test_an_sdk_that_does_not_answer_is_left_out(package, log, temporal_client):
    seen = ServedMetrics(MetricsAddress("127.0.0.1", 0))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        gone = f"127.0.0.1:{taken.getsockname()[1]}"
        async with running_worker(temporal_client, log, package.manifest) as worker:
            connection = Connection(temporal_client, "there", sdk_metrics=gone)
            with seen.serving(worker, log, connection) as url:
                found = await samples(url)
    assert not [name for name, _ in found if name.startswith("temporal_")]
    assert ("harn_orchestrator_pump_running", ()) in found


def test_a_port_that_is_taken_is_a_mistake_of_usage():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with (
            pytest.raises(UsageError, match=f"127.0.0.1:{port}.*--metrics-port 0"),
            served(CollectorRegistry(), "127.0.0.1", port),
        ):
            pass


async def test_a_dispatch_that_exists_is_told_as_deduped(
    temporal_client, package, log, ended, monkeypatch
):
    """As after a cursor that was lost: the pump finds the envelope again."""
    from harn_temporal.dedupe_figures import dropped
    from harn_temporal.pump_worker import start_unended
    from harn_temporal.temporal.starter import Started

    before = dropped().get(("fine", "dispatch_exists"), 0)
    begun = []

    async def twice(client, request, *, eager):
        begun.append(await start_unended(client, request, eager=eager))
        return await start_unended(client, request, eager=eager)

    monkeypatch.setattr("harn_temporal.pump_worker.start_unended", twice)
    async with running_worker(temporal_client, log, package.manifest):
        await package.ingest("fine")
        await ended(1)
    assert [type(each) for each in begun] == [Started]
    assert dropped()["fine", "dispatch_exists"] == before + 1


async def _exists(path):
    return path.exists()


async def _claim(log):
    policy, _ = read_policy({})
    order = ClaimOrder(queue="triage", consumer_id="here")
    return await log.transact(lambda tx: claim(tx, order, policy))


def test_a_process_keeps_the_counters_of_the_keys_it_met_last():
    keys = [Series("triage", "tenant", f"tenant-{number}") for number in range(1200)]
    found = _latest(dict.fromkeys(keys, 1))
    assert found == [(key, 1.0) for key in keys[-MOST_SCHEDULER_SERIES:]]


def test_retries_beyond_the_twentieth_share_a_label():
    registry = CollectorRegistry()
    metrics = ProcessMetrics(registry)
    retries = [
        Record("trigger.attempts", number, "retry_scheduled", b"{}", headers, 5, {"delay_ms": 1})
        for number in (2, 20, 21, 999)
        for headers in [life("fine", "x") | {"attempt": str(number)}]
    ]
    metrics.appended(retries, 0.003)
    name = "harn_trigger_retries_total"
    counted = {
        attempt: registry.get_sample_value(name, {"trigger_id": "fine", "attempt": attempt})
        for attempt in ("2", "20", "21", "more")
    }
    assert counted == {"2": 1, "20": 1, "21": None, "more": 2}


def test_a_record_that_makes_no_sense_stops_nothing():
    registry = CollectorRegistry()
    metrics = ProcessMetrics(registry)
    odd = [
        Record("trigger.attempts", 1, "attempt_recorded", b"5", {}, 5),
        Record("trigger.attempts", 2, "attempt_recorded", b"no json", {}, 5),
        Record("trigger.dlq", 3, "dlq_moved", b"{}", {"trigger_id": "fine"}, 5),
        Record("worker.triage.claims", 4, "job_claimed", b'{"scheduling": 1}', {}, 5),
    ]
    metrics.appended(odd, 0.003)
    name = "harn_trigger_dlq_total"
    assert registry.get_sample_value(name, {"trigger_id": "fine", "reason": "retry_exhausted"}) == 1
    append = "harn_event_log_append_duration_seconds"
    topic = {"topic": "trigger.attempts"}
    assert registry.get_sample_value(f"{append}_count", topic) == 1
    assert registry.get_sample_value(f"{append}_sum", topic) == 0.003

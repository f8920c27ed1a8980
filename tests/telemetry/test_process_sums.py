"""What the histograms of a process add up, from figures that are known."""

from __future__ import annotations

import json

from prometheus_client import CollectorRegistry

from harn_temporal.eventlog.records import Record
from harn_temporal.headers import DLQ_REASON
from harn_temporal.pump_figures import Admission
from harn_temporal.telemetry.process_metrics import ProcessMetrics


def measured() -> tuple[ProcessMetrics, CollectorRegistry]:
    registry = CollectorRegistry()
    return ProcessMetrics(registry), registry


def test_an_admission() -> None:
    metrics, registry = measured()
    metrics.admitted(
        Admission(
            trigger_id="fine",
            binding_key="fine@v1",
            provider="shop",
            tenant_id=None,
            workflow_id="w",
            accepted_at_ms=1_000,
            appended_at_ms=1_500,
            admitted_at_ms=3_500,
            started_at_ms=4_000,
        )
    )
    life = {
        "trigger_id": "fine",
        "binding_key": "fine@v1",
        "provider": "shop",
        "status": "admitted",
    }
    for name, labels, seconds in (
        ("harn_trigger_webhook_accepted_to_queue_append", life, 0.5),
        ("harn_trigger_queue_age_at_dispatch_admission", life, 2.5),
        ("harn_orchestrator_pump_admission_delay", {"topic": "trigger.inbox.envelopes"}, 2.0),
    ):
        assert registry.get_sample_value(f"{name}_seconds_sum", labels) == seconds


def test_a_claim_and_a_dead_letter_of_an_open_circuit() -> None:
    metrics, registry = measured()
    claimed = {"scheduling": {"waited_ms": 2_500}}
    dead = {"event": {"received_at": "2026-01-01T00:00:00.000Z"}}
    headers = {
        "trigger_id": "fine",
        "binding_key": "fine@v1",
        "provider": "shop",
        DLQ_REASON: "circuit_open",
    }
    moved_at_ms = 1_767_225_600_000 + 750
    metrics.appended(
        [
            Record("worker.triage.claims", 1, "job_claimed", json.dumps(claimed).encode(), {}, 5),
            Record("trigger.dlq", 1, "dlq_moved", json.dumps(dead).encode(), headers, moved_at_ms),
        ],
        0.001,
    )
    age = "harn_worker_queue_claim_age_seconds_sum"
    assert registry.get_sample_value(age, {"queue": "triage"}) == 2.5
    rejected = {"dimension": "circuit", "action": "reject"}
    assert registry.get_sample_value("harn_backpressure_events_total", rejected) == 1
    life = {
        "trigger_id": "fine",
        "binding_key": "fine@v1",
        "provider": "shop",
        "status": "circuit_open",
    }
    assert registry.get_sample_value("harn_trigger_accepted_to_dlq_seconds_sum", life) == 0.75

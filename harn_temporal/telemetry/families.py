"""Every metric family of ours, in one table. Names and labels are Harn's where Harn has one."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

FAST = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Seconds, for what a machine does by itself."""

LATENCY = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0, 7200.0)
"""Seconds, for what events wait for."""

RETRIES = (0.1, 1.0, 5.0, 30.0, 60.0, 300.0, 1800.0, 7200.0, 18000.0, 36000.0)


class Source(Enum):
    PROCESS = "process"
    """Of a process, since its start; sum or add them up over workers."""
    STORE = "store"
    """Of the shared store; exported by the worker whose pump runs, and by `metrics`."""


@dataclass(frozen=True, slots=True)
class Family:
    """`name` is as Prometheus shows it, so a counter's ends in `_total`."""

    name: str
    kind: str
    labels: tuple[str, ...]
    help: str
    source: Source = Source.PROCESS
    buckets: tuple[float, ...] = ()


_LIFE = ("trigger_id", "binding_key", "provider", "status")
_KEY = ("queue", "fairness_dimension", "fairness_key")

RECEIVED = Family(
    "harn_trigger_received_total",
    "counter",
    ("trigger_id", "provider"),
    "Events that a pump took in, once for each trigger",
)
DEDUPED = Family(
    "harn_trigger_deduped_total",
    "counter",
    ("trigger_id", "reason"),
    "Deliveries that were dropped because the event was known",
)
PREDICATES = Family(
    "harn_trigger_predicate_evaluations_total",
    "counter",
    ("trigger_id", "result"),
    "Answers of `when`",
)
DISPATCHED = Family(
    "harn_trigger_dispatched_total",
    "counter",
    ("trigger_id", "handler_kind", "outcome"),
    "Dispatches that ended",
)
RETRIED = Family(
    "harn_trigger_retries_total",
    "counter",
    ("trigger_id", "attempt"),
    "Attempts that were scheduled after a failed one",
)
DEAD = Family(
    "harn_trigger_dlq_total",
    "counter",
    ("trigger_id", "reason"),
    "Dispatches that became dead letters",
)
BACKPRESSURE = Family(
    "harn_backpressure_events_total",
    "counter",
    ("dimension", "action"),
    "What gates and circuits did to dispatches",
)
IN_FLIGHT = Family(
    "harn_trigger_inflight", "gauge", ("trigger_id",), "Attempts that run in this process"
)
TO_APPEND = Family(
    "harn_trigger_webhook_accepted_to_queue_append_seconds",
    "histogram",
    _LIFE,
    "From receiving an event to its envelope in the log",
    buckets=LATENCY,
)
AT_ADMISSION = Family(
    "harn_trigger_queue_age_at_dispatch_admission_seconds",
    "histogram",
    _LIFE,
    "From receiving an event to the pump's admitting its dispatch",
    buckets=LATENCY,
)
AT_START = Family(
    "harn_trigger_queue_age_at_dispatch_start_seconds",
    "histogram",
    _LIFE,
    "From receiving an event to its first attempt; replays are left out",
    buckets=LATENCY,
)
RUNTIME = Family(
    "harn_trigger_dispatch_runtime_seconds",
    "histogram",
    _LIFE,
    "Of one attempt, from its start to its outcome",
    buckets=LATENCY,
)
RETRY_DELAY = Family(
    "harn_trigger_retry_delay_seconds",
    "histogram",
    _LIFE,
    "Waits between two attempts",
    buckets=RETRIES,
)
TO_DLQ = Family(
    "harn_trigger_accepted_to_dlq_seconds",
    "histogram",
    _LIFE,
    "From receiving an event to its becoming a dead letter",
    buckets=LATENCY,
)
ADMISSION_DELAY = Family(
    "harn_orchestrator_pump_admission_delay_seconds",
    "histogram",
    ("topic",),
    "From an envelope's append to its admission",
    buckets=LATENCY,
)
CLAIM_AGE = Family(
    "harn_worker_queue_claim_age_seconds",
    "histogram",
    ("queue",),
    "How long jobs had waited when this process claimed them",
    buckets=LATENCY,
)
APPEND = Family(
    "harn_event_log_append_duration_seconds",
    "histogram",
    ("topic",),
    "Transactions that appended to a topic, from their wait for the writer's lock to the commit",
    buckets=FAST,
)
SELECTIONS = Family("harn_scheduler_selections_total", "counter", _KEY, "Jobs that were claimed")
DEFERRALS = Family(
    "harn_scheduler_deferrals_total",
    "counter",
    _KEY,
    "Selections that passed over a key because it was not eligible",
)
PROMOTIONS = Family(
    "harn_scheduler_starvation_promotions_total",
    "counter",
    _KEY,
    "Jobs that were claimed because of their age",
)
HOPS = Family("harn_a2a_hops_total", "counter", ("target", "outcome"), "Hops to A2A agents")
HOP_DURATION = Family(
    "harn_a2a_hop_duration_seconds",
    "histogram",
    ("target",),
    "From looking for the agent to its answer",
)
PUMP_BACKLOG = Family(
    "harn_orchestrator_pump_backlog",
    "gauge",
    ("package",),
    "Envelopes that no dispatch was started for",
    Source.STORE,
)
PUMP_OUTSTANDING = Family(
    "harn_orchestrator_pump_outstanding",
    "gauge",
    ("package",),
    "Dispatches that take a place in the pump",
    Source.STORE,
)
OLDEST_PENDING = Family(
    "harn_trigger_oldest_pending_age_seconds",
    "gauge",
    ("package",),
    "Age of the oldest envelope that no dispatch was started for; 0 without one",
    Source.STORE,
)
STORE_IN_FLIGHT = Family(
    "harn_dispatcher_in_flight", "gauge", (), "Attempts that run, in all processes", Source.STORE
)
RETRY_DEPTH = Family(
    "harn_dispatcher_retry_queue_depth",
    "gauge",
    (),
    "Dispatches between two attempts",
    Source.STORE,
)
DLQ_DEPTH = Family(
    "harn_dispatcher_dlq_depth", "gauge", (), "Dead letters that are pending", Source.STORE
)
LOST = Family(
    "harn_dispatcher_lost",
    "gauge",
    (),
    "Dispatches that Temporal does not know, and that `recover` brings back",
    Source.STORE,
)
QUEUE_DEPTH = Family(
    "harn_worker_queue_depth", "gauge", ("queue",), "Jobs that are ready", Source.STORE
)
QUEUE_IN_FLIGHT = Family(
    "harn_worker_queue_in_flight", "gauge", ("queue",), "Jobs under a claim", Source.STORE
)
DEFICIT = Family(
    "harn_scheduler_deficit", "gauge", _KEY, "Credits that a key has left", Source.STORE
)
OLDEST_ELIGIBLE = Family(
    "harn_scheduler_oldest_eligible_age_seconds",
    "gauge",
    _KEY,
    "Age of a key's oldest ready job; 0 without one",
    Source.STORE,
)
UNLISTED_KEYS = Family(
    "harn_scheduler_unlisted_keys",
    "gauge",
    ("queue", "fairness_dimension"),
    "Keys with jobs that have no series, because others have older ones",
    Source.STORE,
)
CIRCUIT_STATE = Family(
    "harn_circuit_state",
    "gauge",
    ("destination",),
    "0 closed, 1 half-open, 2 open; of destinations whose last attempt failed",
    Source.STORE,
)
STORE_READS_FAILED = Family(
    "harn_metrics_store_read_failed",
    "gauge",
    (),
    "1 where a scrape could not read the store, whose series are then missing",
)
PUMP_HOLDER = Family(
    "harn_orchestrator_pump_running", "gauge", (), "1 in the process whose pump runs, else 0"
)

FAMILIES: tuple[Family, ...] = tuple(
    value for value in list(globals().values()) if isinstance(value, Family)
)

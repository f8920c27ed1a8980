"""Figures of the shared store as metric families, read in one look."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from harn_temporal.eventlog import tallies
from harn_temporal.eventlog.log import Reader
from harn_temporal.inspection.gates import circuit_view
from harn_temporal.inspection.overview import ENDED
from harn_temporal.scheduler.policy import Policy
from harn_temporal.telemetry import families
from harn_temporal.telemetry.families import Family

MOST_KEYS = 200
"""Fairness keys of a queue that have series: those whose jobs wait longest."""

MOST_QUEUES = 500
MOST_PACKAGES = 500
MOST_CIRCUITS = 500
CIRCUIT_STATES = ("closed", "half-open", "open")

_COUNTED = {
    tallies.RECEIVED: families.RECEIVED,
    tallies.DISPATCHED: families.DISPATCHED,
    tallies.RETRIED: families.RETRIED,
    tallies.DEAD: families.DEAD,
}


def store_gauges(reader: Reader, policy: Policy) -> list[Metric]:
    """What is in the store now. A key, queue or package that is gone has no series."""
    return [*_pumps(reader), *_dispatcher(reader), *_circuits(reader), *_queues(reader, policy)]


def store_counters(reader: Reader, policy: Policy) -> list[Metric]:
    """What was counted since the store was made, of triggers and keys that are still there."""
    current = {each.trigger_id for each in reader.bindings.states() if each.state != ENDED}
    found = {what: counter(family) for what, family in _COUNTED.items()}
    for (what, labels), count in reader.tallies.all().items():
        if what in found and labels[0] in current:
            found[what].add_metric(labels, count)
    selections, deferrals = counter(families.SELECTIONS), counter(families.DEFERRALS)
    promotions = counter(families.PROMOTIONS)
    dimension = policy.fairness_key
    for name, queue in _queue_names(reader):
        keys, _ = reader.queues.busy_keys(queue, dimension, MOST_KEYS)
        for key in keys:
            labels = (name, dimension, key.key)
            selections.add_metric(labels, key.selected_total)
            deferrals.add_metric(labels, key.deferred_total)
        rounds = reader.queues.round(queue, dimension)
        promotions.add_metric((name, dimension, ""), rounds.starvations)
    return [*found.values(), selections, deferrals, promotions]


def gauge(family: Family, samples: Iterable[tuple[Sequence[str], float]] = ()) -> GaugeMetricFamily:
    found = GaugeMetricFamily(family.name, family.help, labels=family.labels)
    for labels, value in samples:
        found.add_metric(labels, value)
    return found


def counter(
    family: Family, samples: Iterable[tuple[Sequence[str], float]] = ()
) -> CounterMetricFamily:
    found = CounterMetricFamily(family.name, family.help, labels=family.labels)
    for labels, value in samples:
        found.add_metric(labels, value)
    return found


def _pumps(reader: Reader) -> list[Metric]:
    packages = {
        each.package for each in reader.bindings.states() if each.package and each.state != ENDED
    }
    backlog, outstanding, oldest = (
        gauge(family)
        for family in (families.PUMP_BACKLOG, families.PUMP_OUTSTANDING, families.OLDEST_PENDING)
    )
    for package in sorted(packages)[:MOST_PACKAGES]:
        waiting = reader.dispatches.count_waiting(package)
        backlog.add_metric((package,), waiting.count)
        outstanding.add_metric((package,), reader.dispatches.outstanding(package))
        age_ms = reader.now_ms - waiting.oldest_ms if waiting.count else 0
        oldest.add_metric((package,), max(0, age_ms) / 1000)
    return [backlog, outstanding, oldest]


def _circuits(reader: Reader) -> list[Metric]:
    states = gauge(families.CIRCUIT_STATE)
    for circuit in reader.circuits.page(limit=MOST_CIRCUITS):
        state = CIRCUIT_STATES.index(circuit_view(circuit, reader.now_ms)["state"])
        states.add_metric((circuit.destination,), state)
    return [states]


def _dispatcher(reader: Reader) -> list[Metric]:
    under_way = reader.dispatches.figures()
    return [
        gauge(families.STORE_IN_FLIGHT, [((), under_way.in_flight)]),
        gauge(families.RETRY_DEPTH, [((), under_way.retrying)]),
        gauge(families.DLQ_DEPTH, [((), reader.dead_letters.depth())]),
        gauge(families.LOST, [((), reader.dispatches.count_lost())]),
    ]


def _queues(reader: Reader, policy: Policy) -> list[Metric]:
    depth, in_flight = gauge(families.QUEUE_DEPTH), gauge(families.QUEUE_IN_FLIGHT)
    deficit, oldest = gauge(families.DEFICIT), gauge(families.OLDEST_ELIGIBLE)
    unlisted = gauge(families.UNLISTED_KEYS)
    dimension = policy.fairness_key
    for name, queue in _queue_names(reader):
        figures = reader.queues.figures(queue)
        depth.add_metric((name,), figures.ready)
        in_flight.add_metric((name,), figures.in_flight)
        keys, all_of_them = reader.queues.busy_keys(queue, dimension, MOST_KEYS)
        for key in keys:
            labels = (name, dimension, key.key)
            deficit.add_metric(labels, key.credit)
            since = key.oldest_ready_at_ms
            age_ms = 0 if since is None else max(0, reader.now_ms - since)
            oldest.add_metric(labels, age_ms / 1000)
        unlisted.add_metric((name, dimension), all_of_them - len(keys))
    return [depth, in_flight, deficit, oldest, unlisted]


def _queue_names(reader: Reader) -> list[tuple[str, str]]:
    return sorted(reader.queues.names().items())[:MOST_QUEUES]

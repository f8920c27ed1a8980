"""What gates and circuits do is counted, once, and the circuits' state is shown."""

from __future__ import annotations

from prometheus_client import CollectorRegistry

from harn_temporal.eventlog import StoreSettings, open_event_log
from harn_temporal.gates.admission import admit
from harn_temporal.gates.circuit import FAILURES, OPEN_MS, ask_circuit, tell_circuit
from harn_temporal.gates.decisions import Asker
from harn_temporal.gates.identity import GateKey
from harn_temporal.gates.models import Concurrency, RateLimit
from harn_temporal.scheduler.policy import Policy
from harn_temporal.telemetry.process_metrics import ProcessMetrics
from harn_temporal.telemetry.store_metrics import store_gauges

AGENT = "a2a://reviewer.test/triage"


class Clock:
    now_ms = 1_700_000_000_000

    def __call__(self):
        return self.now_ms


def ask(tx):
    gates = [("concurrency", Concurrency(max=1)), ("rate_limit", RateLimit(period_ms=9, max=1))]
    for kind, gate in gates:
        for holder in "abb":
            asker = Asker(holder=holder, permit_id=holder, ttl_ms=9)
            admit(tx, gate, GateKey(kind=kind, binding_key="fine@v1"), asker)


async def circuit_states(log):
    found = await log.query(lambda reader: store_gauges(reader, Policy()))
    return {
        sample.labels["destination"]: sample.value
        for family in found
        if family.name == "harn_circuit_state"
        for sample in family.samples
    }


async def test_gates_and_circuits_are_counted():
    clock, registry = Clock(), CollectorRegistry()
    log = await open_event_log(StoreSettings("memory"), clock=clock)
    log.observe(ProcessMetrics(registry).appended)
    await log.transact(ask)
    for attempt in range(FAILURES):
        await log.transact(lambda tx, n=attempt: tell_circuit(tx, AGENT, "a", n, failed=True))
    assert await circuit_states(log) == {AGENT: 2}
    clock.now_ms += OPEN_MS
    assert await circuit_states(log) == {AGENT: 1}
    await log.transact(lambda tx: ask_circuit(tx, AGENT, "b", ttl_ms=9))
    await log.transact(lambda tx: tell_circuit(tx, AGENT, "b", 1, failed=False))
    assert await circuit_states(log) == {}
    await log.close()
    counted = {
        (sample.labels["dimension"], sample.labels["action"]): sample.value
        for family in registry.collect()
        for sample in family.samples
        if sample.name == "harn_backpressure_events_total"
    }
    assert counted == {
        ("concurrency", "wait"): 1,
        ("rate_limit", "skip"): 1,
        ("circuit", "open"): 1,
        ("circuit", "probe"): 1,
        ("circuit", "close"): 1,
    }

"""Prometheus metrics of hops. The label `target` is the manifest's own word for the agent."""

from __future__ import annotations

from typing import Literal

from prometheus_client import Counter, Histogram

HopOutcome = Literal["completed", "pending", "failed", "denied", "canceled", "timeout", "abandoned"]

HOPS = Counter(
    "harn_a2a_hops",
    "Hops to A2A agents, by what came of them",
    ["target", "outcome"],
)
DURATION = Histogram(
    "harn_a2a_hop_duration_seconds",
    "From looking for the agent to its answer",
    ["target"],
    buckets=(0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 600),
)


def observe_hop(target: str, outcome: HopOutcome, seconds: float) -> None:
    HOPS.labels(target=target, outcome=outcome).inc()
    DURATION.labels(target=target).observe(seconds)

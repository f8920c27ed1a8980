"""The part of a worker that pumps: the pump's activity, its singleton workflow, its sweep."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from temporalio.client import Client
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.service import RPCError
from temporalio.worker import Worker

from harn_temporal.activities.envelopes import Envelopes
from harn_temporal.activities.pump import PumpActivities
from harn_temporal.activities.pump_loop import Pump
from harn_temporal.activities.sweep import Life, Release, Sweep
from harn_temporal.contracts import DispatchRequest, PumpRequest
from harn_temporal.dedupe_figures import count_dropped
from harn_temporal.errors import TemporalUnavailableError
from harn_temporal.eventlog.log import EventLog
from harn_temporal.naming import control_queue, pump_workflow_id, task_queue
from harn_temporal.pump_figures import PumpFigures
from harn_temporal.temporal.describing import describe_life
from harn_temporal.temporal.other_workers import OtherWorkers
from harn_temporal.temporal.starter import Started, start_unended
from harn_temporal.workflows.pump import PumpWorkflow

SIDE_BY_SIDE = 2
"""The pump that runs, and one that was given up for dead and is not."""


@dataclass(frozen=True)
class PumpSettings:
    """`releases` give back what a swept dispatch holds; `sweeps` run along with each sweep."""

    grace: timedelta
    sweep_interval: timedelta
    heartbeat_throttle: timedelta
    releases: Sequence[Release] = ()
    sweeps: Sequence[Callable[[], Awaitable[None]]] = ()


def pump_worker(
    client: Client,
    log: EventLog,
    envelopes: Envelopes,
    figures: PumpFigures,
    settings: PumpSettings,
) -> Worker:
    """A worker of the package's control queue, for the pump only."""
    others = OtherWorkers(client, task_queue(log.store_id, envelopes.package))

    async def start(request: DispatchRequest) -> None:
        started = await start_unended(client, request, eager=not await others.there())
        if not isinstance(started, Started):
            count_dropped(request.binding.trigger_id, "dispatch_exists")

    async def describe(workflow_id: str) -> Life:
        return await describe_life(client, workflow_id)

    pump = Pump(log, start, envelopes, figures)
    sweep = Sweep(
        log, describe, envelopes, figures, releases=settings.releases, others=settings.sweeps
    )
    activities = PumpActivities(pump, sweep, settings.sweep_interval)
    return Worker(
        client,
        task_queue=control_queue(log.store_id, envelopes.package),
        activities=[activities.run_pump],
        max_concurrent_activities=SIDE_BY_SIDE,
        graceful_shutdown_timeout=settings.grace,
        max_heartbeat_throttle_interval=settings.heartbeat_throttle,
        default_heartbeat_throttle_interval=settings.heartbeat_throttle,
    )


async def ensure_pump(
    client: Client, log: EventLog, package: str, *, heartbeat_timeout_ms: int
) -> None:
    """See that the package's pump workflow is there. Raises TemporalUnavailableError."""
    try:
        await client.start_workflow(
            PumpWorkflow.run,
            PumpRequest(
                store_id=log.store_id,
                package=package,
                control_queue=control_queue(log.store_id, package),
                heartbeat_timeout_ms=heartbeat_timeout_ms,
            ),
            id=pump_workflow_id(log.store_id, package),
            task_queue=task_queue(log.store_id, package),
            id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
            id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
            static_summary=f"pump of {package}"[:200],
        )
    except RPCError as error:
        raise TemporalUnavailableError(
            f"the Temporal service at {client.service_client.config.target_host} does not take "
            f"the pump of {package}: {error.message}"
        ) from error

"""The worker of a package: it runs its workflows, its handlers, and where told so its pump."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import lru_cache, partial
from typing import Any, TypeVar

from temporalio.client import Client
from temporalio.worker import Worker

from harn_temporal.a2a.client import A2aClient
from harn_temporal.activities.a2a_hop import AgentHop
from harn_temporal.activities.a2a_task import A2aTaskActivities
from harn_temporal.activities.attempt import AttemptActivities, LoadHandler
from harn_temporal.activities.breaker import PredicateBreaker
from harn_temporal.activities.cancellations import Cancellations
from harn_temporal.activities.envelopes import Envelopes
from harn_temporal.activities.gate_grants import GrantWatch
from harn_temporal.activities.gate_sweep import GateSweep
from harn_temporal.activities.gate_wakes import Wakes
from harn_temporal.activities.gates import GateActivities
from harn_temporal.activities.handler_threads import HandlerThreads
from harn_temporal.activities.interruption import interruption
from harn_temporal.activities.job_sweep import JobSweep
from harn_temporal.activities.predicate import PredicateActivities
from harn_temporal.activities.queue_jobs import QueueActivities
from harn_temporal.activities.unadmitted import Unadmitted
from harn_temporal.attempt_figures import AttemptFigures, StartedAttempt
from harn_temporal.bindings import Binding
from harn_temporal.clock import Clock, system_clock
from harn_temporal.consumers import (
    ConsumerOptions,
    queue_activities,
    selection_worker,
    serving,
)
from harn_temporal.contracts import (
    DEFAULT_HEARTBEAT_TIMEOUT_MS,
)
from harn_temporal.eventlog.log import EventLog
from harn_temporal.left_consumers import LeftConsumers
from harn_temporal.manifest import Manifest
from harn_temporal.naming import consumer_queue, task_queue
from harn_temporal.pump_figures import Admission, PumpFigures
from harn_temporal.pump_keeping import keep_pump
from harn_temporal.pump_worker import PumpSettings, ensure_pump, pump_worker
from harn_temporal.recovery.stranded import StrandedCount, note_stranded
from harn_temporal.registry import register
from harn_temporal.scheduler_figures import SchedulerFigures
from harn_temporal.temporal.canceller import cancel_dispatch, cancel_inline_job
from harn_temporal.temporal.describing import describe_life
from harn_temporal.temporal.gate_signals import signal_waiter
from harn_temporal.temporal.sandbox import workflow_runner
from harn_temporal.temporal.search_attributes import register_search_attributes
from harn_temporal.workflows.consume import ConsumeWorkflow
from harn_temporal.workflows.dispatch import DispatchWorkflow
from harn_temporal.workflows.pump import PumpWorkflow

logger = logging.getLogger("harn_temporal.worker")

T = TypeVar("T")

DEFAULT_MAX_CONCURRENT = 16
DEFAULT_GRACE = timedelta(seconds=10)

SHUTDOWN_MARGIN = timedelta(seconds=20)
"""Beyond its grace a shutdown may take so long for records and for telling Temporal."""

MAX_HEARTBEAT_THROTTLE = timedelta(seconds=1)
"""Without it a cancellation takes 20 s to reach a handler."""

STICKY_TIMEOUT = timedelta(seconds=2)
"""How long a workflow waits for the worker that has it in its cache, when that one was killed."""


@dataclass(frozen=True)
class WorkerOptions:
    """`max_concurrent` counts handlers at a time, apart for dispatches and for each consumer id.

    `grace` is what they get to end in a shutdown.
    """

    max_concurrent: int = DEFAULT_MAX_CONCURRENT
    pump: bool = True
    adopt_foreign: bool = False
    """Also dispatch envelopes that no package of ours marked: Harn's."""
    tasks: str | None = None
    """The task queue of a consumer that it works for alone; None for the package's."""
    consume: tuple[ConsumerOptions, ...] = ()
    """Queues that are served as long as the worker runs, on task queues of their own."""
    sweep_interval: timedelta = timedelta(seconds=60)
    """How often its pump looks for dispatches whose workflow is gone."""
    grace: timedelta = DEFAULT_GRACE
    heartbeat_timeout: timedelta = timedelta(milliseconds=DEFAULT_HEARTBEAT_TIMEOUT_MS)
    """Of the dispatches that its pump starts, and of the pump where it is the first to run it."""


@dataclass(frozen=True)
class Observers:
    """Told of each admission, and of the first attempt of each dispatch, from the very start."""

    on_admission: Callable[[Admission], None] | None = None
    on_start: Callable[[StartedAttempt], None] | None = None


@dataclass(frozen=True)
class RunningWorker:
    """`bindings` are the manifest's, registered: with their versions."""

    bindings: tuple[Binding, ...]
    search_attributes: bool
    pump: PumpFigures
    """All zeros where it does not pump, or another worker does."""
    stranded: StrandedCount
    """Envelopes that were found stranded when it started."""
    scheduler: SchedulerFigures
    """What it selected from worker queues."""
    attempts: AttemptFigures
    _tasks: tuple[asyncio.Task[None], ...] = field(repr=False)

    async def until(self, work: Coroutine[Any, Any, T]) -> T:
        """What `work` gives. Raises what ended the worker, should it fail before.

        StoreUpgradedError among that: then nothing that waits for this worker comes about.
        """
        wanted = asyncio.ensure_future(work)
        try:
            await asyncio.wait({wanted, *self._tasks}, return_when=asyncio.FIRST_COMPLETED)
            for task in self._tasks:
                if task.done():
                    task.result()
            return await wanted
        finally:
            wanted.cancel()


@asynccontextmanager
async def running_worker(
    client: Client,
    log: EventLog,
    manifest: Manifest,
    options: WorkerOptions = WorkerOptions(),
    *,
    clock: Clock = system_clock,
    agents: A2aClient | None = None,
    observers: Observers = Observers(),
) -> AsyncIterator[RunningWorker]:
    """Register the manifest's bindings and work for its package until the block is left.

    Leaving it is the orderly shutdown: nothing new is polled, handlers get the grace period,
    what they do not end in it is run again by the next worker and counts as no attempt, and
    timers go on without a worker. Raises TemporalUnavailableError or StoreUnavailableError.
    """
    bindings = await register(log, manifest.package, manifest.bindings)
    search_attributes = await register_search_attributes(client)
    current = {binding.trigger_id: binding for binding in bindings}
    agents = agents or A2aClient(clock=clock)
    _warn_of_tokens(agents, bindings)
    scheduler, attempts = SchedulerFigures(), AttemptFigures(on_start=observers.on_start)
    queues = queue_activities(client, log, current, scheduler)
    wakes = Wakes(partial(signal_waiter, client))

    handler_worker = partial(
        _handler_worker,
        client,
        log,
        manifest,
        options,
        queues,
        figures=attempts,
        wakes=wakes,
        clock=clock,
        agents=agents,
    )

    def workers_of(tasks: str) -> list[Worker]:
        selecting = selection_worker(client, tasks, queues, MAX_HEARTBEAT_THROTTLE)
        return [handler_worker(tasks=tasks), selecting]

    consumed = {
        consumer_queue(log.store_id, manifest.package, each.consumer_id) for each in options.consume
    }
    if options.tasks is None:
        workers = [handler_worker(tasks=task_queue(log.store_id, manifest.package))]
    else:
        workers = []
        consumed.add(options.tasks)
    workers += [worker for tasks in consumed for worker in workers_of(tasks)]
    figures = PumpFigures(manifest.max_outstanding, on_admission=observers.on_admission)
    stranded = StrandedCount()
    upkeep: list[Coroutine[Any, Any, None]] = []
    envelopes = Envelopes(
        store_id=log.store_id,
        package=manifest.package,
        current=current,
        search_attributes=search_attributes,
        heartbeat_timeout_ms=_ms(options.heartbeat_timeout),
        adopt_foreign=options.adopt_foreign,
    )
    if options.pump:
        describe = partial(describe_life, client)
        gates = GateSweep(log, describe, wakes)
        jobs = JobSweep(log, describe, gates.release)
        stranded = await note_stranded(
            log, manifest.package, max_outstanding=manifest.max_outstanding
        )
        workers.append(
            pump_worker(client, log, envelopes, figures, _pump_settings(options, gates, jobs))
        )
        ensure = partial(
            ensure_pump,
            client,
            log,
            manifest.package,
            heartbeat_timeout_ms=_ms(options.heartbeat_timeout),
        )
        await ensure()
        upkeep.append(keep_pump(ensure, options.sweep_interval.total_seconds()))
    tasks = tuple(asyncio.create_task(worker.run()) for worker in workers)
    cancellations = Cancellations(
        log,
        Unadmitted(log, envelopes).cancel,
        partial(cancel_dispatch, client),
        partial(cancel_inline_job, client),
        package=manifest.package,
    )
    left = LeftConsumers(client, log, manifest.package, workers_of)
    upkeep += [cancellations.run(), GrantWatch(log, wakes).run(), left.run()]
    beside = [asyncio.create_task(each) for each in upkeep]
    try:
        async with serving(
            client,
            log,
            manifest.package,
            options.consume,
            grace=options.grace,
            search_attributes=search_attributes,
            heartbeat_timeout_ms=_ms(options.heartbeat_timeout),
        ):
            yield RunningWorker(
                bindings,
                search_attributes,
                figures,
                stranded,
                scheduler,
                attempts,
                (*tasks, *beside),
            )
    finally:
        for task in beside:
            task.cancel()
        await asyncio.gather(*beside, return_exceptions=True)
        await _shut_down(workers, tasks, options.grace + SHUTDOWN_MARGIN)
        await wakes.sent()


def _warn_of_tokens(agents: A2aClient, bindings: Sequence[Binding]) -> None:
    """Such a binding fails at its first event, which may come long after the worker's start."""
    named = {binding.bearer_env for binding in bindings if binding.bearer_env is not None}
    unusable = agents.unusable_tokens(named)
    if unusable:
        logger.warning("agent_tokens_missing", extra={"variables": unusable})


async def _shut_down(
    workers: Sequence[Worker], tasks: Sequence[asyncio.Task[None]], bound: timedelta
) -> None:
    """A worker has shut down when its `run` has ended; `shutdown` may wait for one that failed."""
    asked = [asyncio.ensure_future(worker.shutdown()) for worker in workers]
    ended, late = await asyncio.wait(tasks, timeout=bound.total_seconds())
    for task in asked:
        task.cancel()
    for task in late:
        task.cancel()
        logger.error("worker_left_behind", extra={"bound_s": bound.total_seconds()})
    await asyncio.gather(*asked, *ended, return_exceptions=True)


def _handler_worker(
    client: Client,
    log: EventLog,
    manifest: Manifest,
    options: WorkerOptions,
    queues: QueueActivities,
    *,
    tasks: str,
    figures: AttemptFigures,
    wakes: Wakes,
    clock: Clock,
    agents: A2aClient,
) -> Worker:
    executor = HandlerThreads()
    load: LoadHandler = lru_cache(maxsize=None)(manifest.handlers.load)
    hop = AgentHop(agents, interruption=interruption)
    attempts = AttemptActivities(log, load, executor, hop, clock, figures=figures, wakes=wakes)
    followed = A2aTaskActivities(log, hop, wakes)
    gates = GateActivities(log, wakes)
    predicates = PredicateActivities(log, load, executor, PredicateBreaker(clock), clock=clock)
    return Worker(
        client,
        task_queue=tasks,
        workflows=[DispatchWorkflow, PumpWorkflow, ConsumeWorkflow],
        activities=[
            attempts.run_attempt,
            attempts.record_lost_attempt,
            attempts.record_cancelled,
            followed.poll_a2a_task,
            followed.cancel_a2a_task,
            predicates.evaluate_when,
            gates.pass_gates,
            queues.select_jobs,
            queues.renew_claims,
        ],
        workflow_runner=workflow_runner(),
        max_concurrent_activities=options.max_concurrent,
        graceful_shutdown_timeout=options.grace,
        max_heartbeat_throttle_interval=MAX_HEARTBEAT_THROTTLE,
        default_heartbeat_throttle_interval=MAX_HEARTBEAT_THROTTLE,
        sticky_queue_schedule_to_start_timeout=STICKY_TIMEOUT,
    )


def _pump_settings(options: WorkerOptions, gates: GateSweep, jobs: JobSweep) -> PumpSettings:
    return PumpSettings(
        grace=options.grace,
        sweep_interval=options.sweep_interval,
        heartbeat_throttle=MAX_HEARTBEAT_THROTTLE,
        releases=(gates.release,),
        sweeps=(jobs.once, gates.once),
    )


def _ms(duration: timedelta) -> int:
    return duration // timedelta(milliseconds=1)

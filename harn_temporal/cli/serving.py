"""What `up` and `worker` have in common: work for the manifest until told to stop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING

from harn_temporal.cli.dispatch_lines import DispatchLines
from harn_temporal.cli.event_loop import run_with_handlers
from harn_temporal.cli.observing import observe
from harn_temporal.cli.output import line, warn
from harn_temporal.cli.serving_metrics import ServedMetrics
from harn_temporal.cli.stop_signals import StopSignals
from harn_temporal.cli.stores import event_log, read_manifest, worker_seen
from harn_temporal.cli.tables import Column, print_table
from harn_temporal.consumers import ConsumerOptions
from harn_temporal.errors import UsageError
from harn_temporal.queue.consumer_ids import default_consumer_id
from harn_temporal.queue.name_rules import name_problem
from harn_temporal.temporal.connect import Connection, TemporalOptions, connect
from harn_temporal.worker import (
    DEFAULT_MAX_CONCURRENT,
    Observers,
    RunningWorker,
    WorkerOptions,
    running_worker,
)

if TYPE_CHECKING:
    from harn_temporal.bindings import Binding
    from harn_temporal.cli.metrics_options import MetricsAddress
    from harn_temporal.cli.options import CommonOptions
    from harn_temporal.eventlog.log import EventLog, Record
    from harn_temporal.manifest import Manifest
    from harn_temporal.recovery.stranded import StrandedCount


logger = logging.getLogger("harn_temporal.worker")


def serve(
    options: CommonOptions,
    temporal: TemporalOptions,
    worker: WorkerOptions,
    metrics: MetricsAddress | None,
) -> None:
    """Work until SIGTERM or SIGINT, then drain. Raises what `connect` and the store raise.

    Metrics are served at an address, where one is given.
    """
    observe(options)
    manifest = read_manifest(options, load_handlers=True)
    if manifest.tick_warning is not None:
        warn(manifest.tick_warning)
    run_with_handlers(_serve(options, temporal, worker, manifest, metrics))


def consumers(
    queues: Sequence[str], max_concurrent: int = DEFAULT_MAX_CONCURRENT
) -> tuple[ConsumerOptions, ...]:
    """A consumer of this process for each queue. Raises UsageError for a name none can have."""
    for queue in queues:
        problem = name_problem(queue)
        if problem is not None:
            raise UsageError(problem)
    consumer_id = default_consumer_id()
    return tuple(
        ConsumerOptions(queue, consumer_id, "serve", max_concurrent)
        for queue in dict.fromkeys(queues)
    )


async def _serve(
    options: CommonOptions,
    temporal: TemporalOptions,
    worker_options: WorkerOptions,
    manifest: Manifest,
    metrics: MetricsAddress | None,
) -> None:
    signals = StopSignals()
    seen = None if metrics is None else ServedMetrics(metrics)
    async with AsyncExitStack() as stack:
        try:
            with signals.interrupting():
                connection = await stack.enter_async_context(
                    connect(temporal, options.state_dir, measured=seen is not None)
                )
                log = await stack.enter_async_context(event_log(options))
                await _show_lines(stack, log, manifest)
                observers = Observers() if seen is None else seen.observing(log)
                worker = await stack.enter_async_context(
                    running_worker(
                        connection.client, log, manifest, worker_options, observers=observers
                    )
                )
                if seen is not None:
                    url = stack.enter_context(seen.serving(worker, log, connection))
        except asyncio.CancelledError:
            if signals.told.is_set():
                return
            raise
        _announce(options, connection, manifest, worker)
        if metrics is not None:
            line(f"Metrics   {url}")
            if not (worker_options.pump or metrics.of_store):
                await _warn_of_store_metrics(log, manifest.package)
        for consumer in worker_options.consume:
            line(f"Consuming {consumer.queue} as {consumer.consumer_id}")
        line("Ready. Ctrl-C stops.")
        told = {"package": manifest.package, "address": connection.address}
        logger.info("worker_started", extra=told)
        await worker.until(signals.told.wait())
        logger.info("worker_stopping", extra=told)


async def _warn_of_store_metrics(log: EventLog, package: str) -> None:
    if not await worker_seen(log, package):
        warn(
            "the metrics of the store are served by the worker whose pump runs, and none was seen "
            f"for package {package} in the last minute. Where no worker is to pump, give one of "
            "them --store-metrics"
        )


async def _show_lines(stack: AsyncExitStack, log: EventLog, manifest: Manifest) -> None:
    """Show how this manifest's dispatches go, to the very end of the drain."""
    triggers = {binding.trigger_id for binding in manifest.bindings}

    def wanted(record: Record) -> bool:
        return record.headers.get("trigger_id") in triggers

    lines = DispatchLines(log, wanted, line)
    await lines.start()
    task = asyncio.create_task(lines.run())

    async def finish() -> None:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        await lines.catch_up()

    stack.push_async_callback(finish)


def _announce(
    options: CommonOptions, connection: Connection, manifest: Manifest, worker: RunningWorker
) -> None:
    if connection.ui_url is not None:
        line(f"Web UI    {connection.ui_url}")
    embedded = " (embedded)" if connection.ui_url is not None else ""
    line(f"Temporal  {connection.address}{embedded}")
    line(f"State     {options.state_dir.absolute()}")
    line(f"Manifest  {manifest.path}, package {manifest.package}")
    print_table(
        [Column("trigger"), Column("listens to", rank=1), Column("handler"), Column("retry")],
        [
            [
                binding.binding_key,
                f"{binding.provider} {', '.join(binding.events) or 'every kind'}",
                binding.handler.uri,
                _retry(binding),
            ]
            for binding in worker.bindings
        ],
    )
    _announce_stranded(worker.stranded)


def _announce_stranded(found: StrandedCount) -> None:
    """Of envelopes that have waited for longer than a pump takes to come to them."""
    if found.waiting:
        line(f"Waiting   {_envelopes(found.waiting)} without a dispatch; they are dispatched now")
    if found.passed:
        line(
            f"Stranded  {_envelopes(found.passed)} without a dispatch, which the pump has passed: "
            "`harn-temporal recover --dry-run` lists them"
        )


def _envelopes(count: int) -> str:
    return f"{count} envelope{'s' if count != 1 else ''}"


def _retry(binding: Binding) -> str:
    attempts = binding.retry.max_attempts
    if attempts == 1:
        return "none"
    return f"{binding.retry.schedule.backoff}, {attempts} attempts"

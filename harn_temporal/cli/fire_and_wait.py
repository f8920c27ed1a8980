"""`fire --wait`: a worker in this process, for as long as the one dispatch takes."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING

import typer
from temporalio.client import WorkflowFailureError

from harn_temporal.activities.envelopes import Envelopes
from harn_temporal.cli import ingested
from harn_temporal.cli.dispatch_lines import DispatchLines, outcome_text
from harn_temporal.cli.event_loop import run_with_handlers
from harn_temporal.cli.output import line, note, print_json, stdout_for_results_only
from harn_temporal.cli.stop_signals import StopSignals
from harn_temporal.cli.stores import event_log
from harn_temporal.contracts import DEFAULT_HEARTBEAT_TIMEOUT_MS, DispatchOutcome
from harn_temporal.errors import DispatchFailedError
from harn_temporal.event_address import with_result
from harn_temporal.ingestion import Ingested, ingest
from harn_temporal.temporal.connect import TemporalOptions, connect
from harn_temporal.temporal.starter import AlreadyEnded, start_dispatch
from harn_temporal.worker import RunningWorker, WorkerOptions, running_worker
from harn_temporal.workflows.dispatch import DispatchWorkflow

if TYPE_CHECKING:
    from temporalio.client import Client

    from harn_temporal.cli.options import CommonOptions
    from harn_temporal.eventlog.log import EventLog, Record
    from harn_temporal.events import TriggerEvent
    from harn_temporal.manifest import Manifest

UNSUCCESSFUL = frozenset({"failed", "dlq", "cancelled"})


def fire_and_wait(
    options: CommonOptions,
    temporal: TemporalOptions,
    manifest: Manifest,
    trigger_id: str,
    event: TriggerEvent,
    *,
    as_json: bool,
) -> None:
    """Ingest and dispatch one event, and print its DispatchOutcome.

    Exit code 1 where the dispatch ended as failed, dlq or cancelled. An event that is a duplicate
    or filtered has no dispatch; what became of it is printed instead.
    """
    with stdout_for_results_only():
        found = run_with_handlers(_run(options, temporal, manifest, trigger_id, event))
    if isinstance(found, Ingested):
        if as_json:
            print_json(ingested.to_json(found))
        else:
            ingested.show(found)
        return
    if as_json:
        print_json(found.model_dump(mode="json"))
    else:
        text = outcome_text(found.status, found.attempt_count, found.error)
        line(f"{found.binding_key} {text}")
        if found.result is not None:
            print_json(found.result)
    if found.status in UNSUCCESSFUL:
        raise typer.Exit(1)


async def _run(
    options: CommonOptions,
    temporal: TemporalOptions,
    manifest: Manifest,
    trigger_id: str,
    event: TriggerEvent,
) -> DispatchOutcome | Ingested:
    signals = StopSignals()
    try:
        with signals.interrupting():
            return await _ingest_and_dispatch(options, temporal, manifest, trigger_id, event)
    except asyncio.CancelledError as error:
        if signals.number is None:
            raise
        raise typer.Exit(128 + signals.number) from error


async def _ingest_and_dispatch(
    options: CommonOptions,
    temporal: TemporalOptions,
    manifest: Manifest,
    trigger_id: str,
    event: TriggerEvent,
) -> DispatchOutcome | Ingested:
    async with AsyncExitStack() as stack:
        # Connected first: where no service answers, nothing is ingested that runs later unasked.
        connection = await stack.enter_async_context(connect(temporal, options.state_dir))
        log = await stack.enter_async_context(event_log(options))
        worker = await stack.enter_async_context(
            running_worker(connection.client, log, manifest, WorkerOptions(pump=False))
        )
        [result] = await ingest(
            log, worker.bindings, event, package=manifest.package, only=trigger_id
        )
        if result.status != "accepted":
            return result
        await _show_retries(stack, log, event)
        return await _dispatch(connection.client, log, worker, manifest, result)


async def _dispatch(
    client: Client,
    log: EventLog,
    worker: RunningWorker,
    manifest: Manifest,
    accepted: Ingested,
) -> DispatchOutcome:
    address = accepted.address
    assert address is not None
    [envelope] = await log.read(address.topic, after=address.event_id - 1, limit=1)
    envelopes = Envelopes(
        store_id=log.store_id,
        package=manifest.package,
        current={binding.trigger_id: binding for binding in worker.bindings},
        search_attributes=worker.search_attributes,
        heartbeat_timeout_ms=DEFAULT_HEARTBEAT_TIMEOUT_MS,
    )
    [request] = envelopes.requests(envelope, lambda _trigger_id, _version: None)
    started = await start_dispatch(client, log, request, eager=True)
    if isinstance(started, AlreadyEnded):  # a pump elsewhere was faster, and its worker too
        handle = client.get_workflow_handle_for(DispatchWorkflow.run, started.workflow_id)
    else:
        handle = started.handle
    try:
        outcome = await worker.until(handle.result())
    except asyncio.CancelledError:
        note(f"{accepted.workflow_id} goes on with the next worker; `trigger cancel` ends it")
        raise
    except WorkflowFailureError as error:
        raise DispatchFailedError(
            f"{accepted.workflow_id} was ended from outside: {error.cause}. Its records in the "
            "EventLog say how far it came."
        ) from error
    return await with_result(log, outcome)


async def _show_retries(stack: AsyncExitStack, log: EventLog, event: TriggerEvent) -> None:
    """Say on stderr why it takes a while: the wait for a retry may be hours."""

    def wanted(record: Record) -> bool:
        return record.kind == "retry_scheduled" and record.headers.get("event_id") == event.id

    lines = DispatchLines(log, wanted, note)
    await lines.start()
    task = asyncio.create_task(lines.run())

    async def finish() -> None:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    stack.push_async_callback(finish)

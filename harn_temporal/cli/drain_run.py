"""The run of a drain: a worker in this process for as long as its consumer takes."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import typer
from temporalio.client import WorkflowFailureError

from harn_temporal.cli.event_loop import run_with_handlers
from harn_temporal.cli.observing import observe
from harn_temporal.cli.output import line, note, print_json, stdout_for_results_only, warn
from harn_temporal.cli.stop_signals import StopSignals
from harn_temporal.cli.stores import event_log, read_manifest
from harn_temporal.cli.tables import Column, print_table, printable
from harn_temporal.consumers import (
    ConsumerOptions,
    confirmed,
    start_consumer,
    state_of,
)
from harn_temporal.contracts import DEFAULT_HEARTBEAT_TIMEOUT_MS
from harn_temporal.errors import (
    DispatchFailedError,
    NotFoundError,
    StoreError,
    StoreUnavailableError,
)
from harn_temporal.eventlog.topics import claims_topic, responses_topic
from harn_temporal.inspection.queue_overview import known_queue, queue_summary
from harn_temporal.naming import consumer_queue
from harn_temporal.queue.consumer_ids import default_consumer_id
from harn_temporal.scheduler import read_policy
from harn_temporal.temporal.connect import TemporalOptions, connect
from harn_temporal.worker import WorkerOptions, running_worker
from harn_temporal.workflows.consume import ConsumeWorkflow

if TYPE_CHECKING:
    from harn_temporal.cli.options import CommonOptions
    from harn_temporal.consume_contracts import ConsumeResult
    from harn_temporal.consumers import ConsumerHandle
    from harn_temporal.eventlog.log import EventLog, Record
    from harn_temporal.manifest import Manifest

PAGE = 1000
PROGRESS_S = 2.0
SHARES_SHOWN = 20
RESPONSE_KEYS = ("queue", "job_event_id", "consumer_id", "handled_at_ms", "outcome", "error")
INTERRUPTED = "the drain was interrupted"

ENDS = {
    "limit": "It took as many jobs as --limit allows.",
    "paused": "The queue is paused; `harn-temporal queue resume` lets it go on.",
    "blocked": "Ready jobs are left: they wait behind parked jobs or the limits of their keys, or "
    "this drain has handled them before.",
}


@dataclass(frozen=True, slots=True)
class DrainOptions:
    queue: str
    consumer_id: str | None
    ttl_ms: int
    max_concurrent: int
    limit: int | None
    inline: bool
    max_deliveries: int


@dataclass
class _Seen:
    """What the log says of this consumer since its start; followed while it runs."""

    log: EventLog
    queue: str
    consumer_id: str
    claims_after: int
    responses_after: int
    responses: list[dict[str, Any]] = field(default_factory=list)
    acked: int = 0
    shares: Counter[str] = field(default_factory=Counter)

    async def catch_up(self) -> None:
        topic = claims_topic(self.queue)
        while page := await self.log.read(topic, self.claims_after, PAGE):
            self.claims_after = page[-1].event_id
            for record, payload in self._ours(page):
                if record.kind == "job_acked":
                    self.acked += 1
                elif record.kind == "job_claimed":
                    scheduling = payload.get("scheduling") or {}
                    self.shares[str(scheduling.get("fairness_key", "?"))] += 1
        topic = responses_topic(self.queue)
        while page := await self.log.read(topic, self.responses_after, PAGE):
            self.responses_after = page[-1].event_id
            self.responses += [_ordered(payload) for _, payload in self._ours(page)]

    def _ours(self, page: list[Record]) -> list[tuple[Record, dict[str, Any]]]:
        found = []
        for record in page:
            with suppress(StoreError):  # another program wrote something else
                payload = record.payload
                if isinstance(payload, dict) and payload.get("consumer_id") == self.consumer_id:
                    found.append((record, payload))
        return found

    async def show(self) -> None:
        """Say on stderr how far it has come, until cancelled."""
        shown = None
        while True:
            await asyncio.sleep(PROGRESS_S)
            with suppress(StoreUnavailableError):  # the worker says so
                await self.catch_up()
            text = f"{len(self.responses)} jobs handled, {self.acked} acked"
            if text != shown:
                note(text)
            shown = text


def _ordered(response: dict[str, Any]) -> dict[str, Any]:
    """The keys of a response as Harn shows them; the log has them sorted."""
    return {name: response.get(name) for name in RESPONSE_KEYS} | response


def run_drain(
    options: CommonOptions, temporal: TemporalOptions, drain: DrainOptions, *, as_json: bool
) -> None:
    """Drain, print the result, and exit 1 where jobs were handled and not acked."""
    observe(options)
    manifest = read_manifest(options, load_handlers=True)
    with stdout_for_results_only():
        found = run_with_handlers(_run(options, temporal, manifest, drain))
    if found is None:
        return
    if as_json:
        print_json(found)
    else:
        _show(found)
    if found["deferred"]:
        raise typer.Exit(1)


async def _run(
    options: CommonOptions, temporal: TemporalOptions, manifest: Manifest, drain: DrainOptions
) -> dict[str, Any] | None:
    signals = StopSignals()
    consumer_id = drain.consumer_id or default_consumer_id()
    async with AsyncExitStack() as stack:
        try:
            with signals.interrupting():
                connection = await stack.enter_async_context(connect(temporal, options.state_dir))
                log = await stack.enter_async_context(event_log(options))
                tasks = consumer_queue(log.store_id, manifest.package, consumer_id)
                worker = await stack.enter_async_context(
                    running_worker(
                        connection.client,
                        log,
                        manifest,
                        WorkerOptions(pump=False, max_concurrent=drain.max_concurrent, tasks=tasks),
                    )
                )
        except asyncio.CancelledError:
            if signals.told.is_set():
                return None
            raise
        try:
            await log.query(lambda reader: known_queue(reader, drain.queue))
        except NotFoundError as unknown:  # its first job may be on its way: no mistake for sure
            warn(str(unknown))
        consumer = ConsumerOptions(
            queue=drain.queue,
            consumer_id=consumer_id,
            mode="drain",
            max_concurrent=drain.max_concurrent,
            ttl_ms=drain.ttl_ms,
            limit=drain.limit,
            inline=drain.inline,
            max_deliveries=drain.max_deliveries,
        )
        await stack.enter_async_context(confirmed(log, [consumer.consumer_id]))
        handle = await start_consumer(
            connection.client,
            log,
            manifest.package,
            consumer,
            search_attributes=worker.search_attributes,
            heartbeat_timeout_ms=DEFAULT_HEARTBEAT_TIMEOUT_MS,
        )
        state = await state_of(handle, consumer)
        seen = _Seen(
            log, drain.queue, consumer.consumer_id, state.claims_after, state.responses_after
        )
        showing = asyncio.create_task(seen.show())
        try:
            result = await worker.until(_result(handle, signals.told))
        finally:
            showing.cancel()
            await asyncio.gather(showing, return_exceptions=True)
        await seen.catch_up()
        return await _to_json(log, consumer, result, seen)


async def _result(handle: ConsumerHandle, told: asyncio.Event) -> ConsumeResult:
    """How the consumer ended; a signal to this process asks it to."""
    ended = asyncio.ensure_future(handle.result())
    stopped = asyncio.ensure_future(told.wait())
    try:
        await asyncio.wait({ended, stopped}, return_when=asyncio.FIRST_COMPLETED)
        if not ended.done():
            await handle.signal(ConsumeWorkflow.stop, INTERRUPTED)
        return await ended
    except WorkflowFailureError as error:
        raise DispatchFailedError(
            f"{handle.id} was ended from outside: {error.cause}. What it had claimed is claimed "
            "again once the claims are over."
        ) from error
    finally:
        stopped.cancel()
        ended.cancel()


async def _to_json(
    log: EventLog, consumer: ConsumerOptions, result: ConsumeResult, seen: _Seen
) -> dict[str, Any]:
    claimed = sum(seen.shares.values())
    return {
        "queue": consumer.queue,
        "consumer_id": consumer.consumer_id,
        "claim_ttl_ms": consumer.ttl_ms,
        "drained": len(seen.responses),
        "acked": seen.acked,
        "deferred": len(seen.responses) - seen.acked,
        "responses": seen.responses,
        "summary": await log.query(lambda reader: queue_summary(reader, consumer.queue)),
        "ended": result.ended,
        "lost": result.counts.lost,
        "released": result.counts.released,
        "shares": [
            {"fairness_key": key, "claimed": count, "share": round(count / claimed, 4)}
            for key, count in sorted(seen.shares.items(), key=lambda item: (-item[1], item[0]))
        ],
    }


def _show(found: dict[str, Any]) -> None:
    summary = found["summary"]
    line(
        f"Drained queue {found['queue']} as {found['consumer_id']}: {found['drained']} jobs, "
        f"{found['acked']} acked, {found['deferred']} deferred; {summary['ready']} ready, "
        f"{summary['in_flight']} in flight."
    )
    if found["ended"] != "empty":
        line(ENDS.get(found["ended"], printable(f"It ended because {found['ended']}.")))
    if found["lost"]:
        warn(f"{found['lost']} claims were lost to other consumers, which do those jobs again")
    for response in found["responses"]:
        if response["error"] or (response["outcome"] or {}).get("status") not in (
            "succeeded",
            "skipped",
        ):
            _show_deferred(response)
    if found["shares"]:
        dimension = read_policy(os.environ)[0].fairness_key
        print_table(
            [Column(dimension), Column("jobs", right=True), Column("share", right=True)],
            [
                [each["fairness_key"], str(each["claimed"]), f"{each['share']:.1%}"]
                for each in found["shares"][:SHARES_SHOWN]
            ],
        )


def _show_deferred(response: dict[str, Any]) -> None:
    outcome = response["outcome"] or {}
    error = response["error"] or outcome.get("error") or "no message"
    line(printable(f"job {response['job_event_id']} {outcome.get('status', 'error')}: {error}"))

"""The EventLog, its projections, and the workers that have been at it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from harn_temporal.checkup.check import Check, error, ok, warning
from harn_temporal.durations import format_duration
from harn_temporal.errors import HarnTemporalError, UsageError
from harn_temporal.eventlog import StoreSettings, open_event_log
from harn_temporal.eventlog.log import ConsumerCursor, EventLog, Reader
from harn_temporal.eventlog.topics import INBOX_ENVELOPES
from harn_temporal.inspection.overview import WORKER_SEEN_MS, dispatcher_figures
from harn_temporal.naming import pump_consumer

SHOWN = 3


async def check_store(
    state_dir: Path, environ: Mapping[str, str], package: str | None
) -> list[Check]:
    """Open the store where there is one. `package` is None where the manifest cannot be read."""
    try:
        settings = StoreSettings.from_environment(state_dir, environ)
    except UsageError as problem:
        return [error("event_log", str(problem), "correct the variable, or leave it out")]
    where = f"{settings.kind} at {settings.path}" if settings.path else settings.kind
    if settings.path is None:
        found = "memory: it ends with the process that made it"
        advice = "set HARN_EVENT_LOG_BACKEND=sqlite for anything but tests"
        return [warning("event_log", found, advice)]
    if not settings.path.exists():
        return [ok("event_log", f"{where} is not there yet; the first event or worker makes it")]
    try:
        log = await open_event_log(settings)
    except HarnTemporalError as problem:
        advice = "see to the file, or name another with --state-dir or HARN_EVENT_LOG_…"
        return [error("event_log", f"{where}: {problem}", advice)]
    try:
        checks = [
            await _opened(log, where),
            await _projections(log),
            await _registry(log),
            await _dispatcher(log),
        ]
        return checks if package is None else [*checks, await _workers(log, package)]
    finally:
        await log.close()


async def _opened(log: EventLog, where: str) -> Check:
    heads = await log.topics()
    records = sum(head.last_id for head in heads)
    return ok("event_log", f"{where}, id {log.store_id}: {len(heads)} topics, {records} records")


async def _projections(log: EventLog) -> Check:
    """Asking folds whatever others appended, so an answer means that they are current."""
    skipped = await log.query(lambda reader: reader.skipped())
    if not skipped:
        return ok("projections", "current")
    shown = "; ".join(f"{each.topic} {each.event_id}: {each.reason}" for each in skipped[:SHOWN])
    more = f"; and {len(skipped) - SHOWN} more" if len(skipped) > SHOWN else ""
    return warning(
        "projections",
        f"current, without what cannot be made sense of: {shown}{more}",
        "look at them with `harn-temporal log read`; other records are not affected",
    )


async def _registry(log: EventLog) -> Check:
    states = await log.query(lambda reader: reader.bindings.states())
    active = [state.binding_key for state in states if state.state == "active"]
    if not active:
        return ok("registry", "no trigger is registered; a worker registers those of its manifest")
    shown = ", ".join(active[:SHOWN])
    more = f" and {len(active) - SHOWN} more" if len(active) > SHOWN else ""
    return ok("registry", f"{len(active)} active: {shown}{more}")


async def _dispatcher(log: EventLog) -> Check:
    figures = await log.query(dispatcher_figures)
    found = (
        f"{figures.in_flight} in flight, {figures.retry_queue} in the retry queue, "
        f"{figures.dlq} in the DLQ, {figures.waiting} waiting in the inbox"
    )
    if not figures.lost:
        return ok("dispatcher", found)
    return warning(
        "dispatcher",
        f"{found}; {figures.lost} that Temporal has lost",
        "`harn-temporal recover --envelope-age 0s --dry-run` lists them, with `--yes` for "
        "`--dry-run` it brings them back",
    )


async def _workers(log: EventLog, package: str) -> Check:
    def look(reader: Reader) -> tuple[ConsumerCursor | None, int, int]:
        consumer = reader.consumer(INBOX_ENVELOPES, pump_consumer(package))
        return consumer, reader.dispatches.count_waiting(package).count, reader.now_ms

    consumer, waiting, now_ms = await log.query(look)
    if consumer is not None and now_ms - consumer.updated_at_ms <= WORKER_SEEN_MS:
        return ok("workers", f"one of {package} pumps the inbox")
    if consumer is None:
        found = f"none of {package} has been seen"
    else:
        silence = format_duration((now_ms - consumer.updated_at_ms) // 1000 * 1000)
        found = f"none of {package} has been seen for {silence}"
    if waiting:
        found += f"; {waiting} envelope{'s' if waiting != 1 else ''} waiting"
    return warning("workers", found, "start one with `harn-temporal up` or `harn-temporal worker`")

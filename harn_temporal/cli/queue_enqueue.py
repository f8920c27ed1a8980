"""`harn-temporal queue enqueue`: jobs straight onto a queue."""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from harn_temporal.cli.event_source import (
    STDIN,
    EventOptions,
    build_event,
    kind_for,
    parse_headers,
)
from harn_temporal.cli.option_groups import grouped
from harn_temporal.cli.options import CommonOptions, JsonOption, common_options
from harn_temporal.errors import EventError, HarnTemporalError, UsageError

if TYPE_CHECKING:
    from harn_temporal.bindings import Binding, Priority
    from harn_temporal.events import TriggerEvent
    from harn_temporal.manifest import Manifest
    from harn_temporal.queue.models import NewJob

PROGRESS_EVERY = 10_000
"""Jobs between two lines of progress."""


@grouped
def enqueue(
    ctx: typer.Context,
    queue: Annotated[str, typer.Argument(metavar="QUEUE", help="A queue's name")],
    trigger_id: Annotated[str, typer.Argument(metavar="TRIGGER_ID", help="A trigger's id")],
    *,
    chosen: EventOptions,
    from_file: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="FILE.jsonl",
            help="A job for each line: a payload, or a whole event; `-` for stdin",
        ),
    ] = None,
    priority: Annotated[
        str | None,
        typer.Option("--priority", metavar="P", help="high, normal or low; else the trigger's own"),
    ] = None,
    delay: Annotated[
        str | None,
        typer.Option("--delay", metavar="DURATION", help="Nobody claims the job before, say 10m"),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Append jobs to a queue, for a trigger of the manifest. Needs no Temporal.

    Without a file the event is synthetic. With --from nothing is appended while a line is wrong.

    Example: harn-temporal queue enqueue triage review --from jobs.jsonl --delay 10m
    """
    from harn_temporal.cli.observing import observe
    from harn_temporal.cli.stores import find_binding, read_manifest
    from harn_temporal.durations import parse_duration

    options = common_options(ctx)
    observe(options)
    if from_file is not None and (chosen.event or chosen.payload or chosen.dedupe_key):
        raise UsageError("--from has the events; it goes with none of --event, --payload, "
                         "--dedupe-key")  # fmt: skip
    manifest = read_manifest(options, load_handlers=False)
    binding = find_binding(manifest, trigger_id)
    order = _Order(
        queue=queue,
        binding=binding,
        chosen=chosen,
        priority=_priority(priority),
        delay_ms=0 if delay is None else parse_duration(delay),
    )
    if from_file is None:
        asyncio.run(_enqueue_one(options, manifest, order, as_json=as_json))
        return
    with _lines_file(from_file) as (path, name):
        asyncio.run(_enqueue_lines(options, manifest, order, path, name, as_json=as_json))


@dataclass(frozen=True)
class _Order:
    """What the command line says about every job."""

    queue: str
    binding: Binding
    chosen: EventOptions
    priority: Priority | None
    delay_ms: int

    def job(self, event: TriggerEvent) -> NewJob:
        from harn_temporal.clock import system_clock
        from harn_temporal.queue.models import NewJob
        from harn_temporal.queue.routing import priority_of
        from harn_temporal.telemetry.dispatch_spans import ingest_span

        with ingest_span(event) as span:
            return NewJob(
                queue=self.queue,
                trigger_id=self.binding.trigger_id,
                binding_key=self.binding.binding_key,
                binding_version=self.binding.version or None,
                event=event.to_json(),
                priority=self.priority or priority_of(event, self.binding.priority),
                available_at_ms=system_clock() + self.delay_ms if self.delay_ms else None,
                traceparent=span.traceparent,
            )

    def event(self) -> TriggerEvent:
        binding = self.binding
        return build_event(
            self.chosen,
            provider=binding.provider,
            kind=kind_for(binding, self.chosen),
            trigger_id=binding.trigger_id,
        )

    def event_of_line(self, text: str) -> TriggerEvent:
        """Raises EventError or ValueError."""
        from harn_temporal.events import TriggerEvent, new_event
        from harn_temporal.redaction import redact

        value = json.loads(text, parse_constant=_refuse_constant)
        if isinstance(value, dict) and "provider_payload" in value:
            event = TriggerEvent.from_json(value)
            return event.model_copy(update={"headers": redact(event.headers)})
        binding = self.binding
        return new_event(
            provider=binding.provider,
            kind=self.chosen.kind or (binding.events[0] if binding.events else binding.kind),
            payload=value,
            headers=parse_headers(self.chosen.header),
            tenant_id=self.chosen.tenant,
        )


def _priority(text: str | None) -> Priority | None:
    from harn_temporal.scheduler.candidates import PRIORITIES

    for known in PRIORITIES:
        if text == known:
            return known
    if text is not None:
        raise UsageError(f"--priority {text!r} is none of {', '.join(PRIORITIES)}")
    return None


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"JSON has no {name}")


async def _registered(log: Any, manifest: Manifest, order: _Order) -> _Order:
    from harn_temporal.registry import register

    bindings = await register(log, manifest.package, manifest.bindings)
    binding = next(each for each in bindings if each.trigger_id == order.binding.trigger_id)
    return replace(order, binding=binding)


async def _enqueue_one(
    options: CommonOptions, manifest: Manifest, order: _Order, *, as_json: bool
) -> None:
    from harn_temporal.cli.output import line, print_json
    from harn_temporal.cli.stores import event_log
    from harn_temporal.queue.operations import enqueue_many

    event = order.event()
    async with event_log(options) as log:
        order = await _registered(log, manifest, order)
        [receipt] = await enqueue_many(log, [order.job(event)])
    if as_json:
        print_json(receipt.model_dump())
    else:
        line(f"{order.binding.binding_key} is job {receipt.job_event_id} of queue {order.queue}")


async def _enqueue_lines(
    options: CommonOptions,
    manifest: Manifest,
    order: _Order,
    path: Path,
    name: str,
    *,
    as_json: bool,
) -> None:
    from harn_temporal.cli.output import line, note, print_json
    from harn_temporal.cli.stores import event_log
    from harn_temporal.queue.operations import ENQUEUED_AT_ONCE, enqueue_many

    total = sum(1 for _ in _events(order, path, name))  # each line is checked before the first goes
    done = 0
    first_id = last_id = None
    async with event_log(options) as log:
        order = await _registered(log, manifest, order)
        batch: list[NewJob] = []
        for event in _events(order, path, name):
            batch.append(order.job(event))
            if len(batch) < ENQUEUED_AT_ONCE and done + len(batch) < total:
                continue
            receipts = await enqueue_many(log, batch)
            first_id = first_id or receipts[0].job_event_id
            last_id = receipts[-1].job_event_id
            before, done, batch = done, done + len(batch), []
            if done // PROGRESS_EVERY > before // PROGRESS_EVERY:
                note(f"{done} of {total} jobs enqueued")
    if as_json:
        print_json(
            {
                "queue": order.queue,
                "enqueued": done,
                "first_job_event_id": first_id,
                "last_job_event_id": last_id,
            }
        )
    else:
        line(f"Enqueued {done} jobs for {order.binding.binding_key} on queue {order.queue}")


def _events(order: _Order, path: Path, name: str) -> Iterator[TriggerEvent]:
    """The event of each line that is not blank. Raises UsageError that names the wrong line."""
    with path.open("rb") as file:
        for number, raw in enumerate(file, 1):
            if not raw.strip():
                continue
            try:
                yield order.event_of_line(raw.decode("utf-8-sig" if number == 1 else "utf-8"))
            except UnicodeDecodeError as error:
                raise UsageError(f"{name} line {number} is not UTF-8: {error.reason}") from error
            except json.JSONDecodeError as error:
                raise UsageError(
                    f"{name} line {number} is not JSON: {error.msg} at column {error.colno}"
                ) from error
            except (EventError, HarnTemporalError, ValueError, RecursionError) as error:
                raise UsageError(f"{name} line {number} holds no event: {error}") from error


@contextmanager
def _lines_file(given: Path) -> Iterator[tuple[Path, str]]:
    """The file and what to call it; stdin is kept in a file, since it is read twice."""
    if str(given) != STDIN:
        if not given.is_file():
            raise UsageError(f"cannot read {given}: there is no such file")
        yield given, str(given)
        return
    with tempfile.NamedTemporaryFile(suffix=".jsonl") as kept:
        for part in iter(lambda: sys.stdin.buffer.read(1 << 20), b""):
            kept.write(part)
        kept.flush()
        yield Path(kept.name), "stdin"

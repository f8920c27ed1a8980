"""Events and contexts for tests, from as little as a test cares about."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harn_temporal.canonical import decode
from harn_temporal.clock import Clock, system_clock
from harn_temporal.context import HandlerContext, mark_cancelled
from harn_temporal.errors import EventError, NotJsonError
from harn_temporal.events import TriggerEvent, new_event
from harn_temporal.ids import event_id as new_event_id
from harn_temporal.ids import trace_id as new_trace_id


def make_event(
    provider: str,
    kind: str,
    payload: Any = None,
    *,
    headers: Mapping[str, str] | None = None,
    tenant_id: str | None = None,
    dedupe_key: str | None = None,
    clock: Clock = system_clock,
) -> TriggerEvent:
    """An event as `harn-temporal ingest` makes it: typed, with secrets in headers blanked.

    A `payload` that is a Path is read from that JSON file; without one it is `{}`. Raises
    EventError for what could not be ingested either.
    """
    if isinstance(payload, Path):
        payload = _json_in(payload)
    return new_event(
        provider=provider,
        kind=kind,
        payload={} if payload is None else payload,
        headers=headers,
        tenant_id=tenant_id,
        dedupe_key=dedupe_key,
        clock=clock,
    )


def read_event(path: str | Path) -> TriggerEvent:
    """A whole trigger event from a JSON file, as `--event FILE` takes it. Raises EventError."""
    return TriggerEvent.from_json(_json_in(Path(path)))


def make_context(event: TriggerEvent | None = None, **fields: Any) -> HandlerContext:
    """A context to call a handler with: of `event` where given, at attempt 1 of 7.

    `fields` are those of HandlerContext and replace what it would have.
    """
    given: dict[str, Any] = {
        "event_id": new_event_id() if event is None else event.id,
        "trace_id": new_trace_id() if event is None else event.trace_id,
        "tenant_id": None if event is None else event.tenant_id,
        "trigger_id": "test",
        "binding_key": f"{fields.get('trigger_id', 'test')}@v1",
        "attempt": 1,
        "max_attempts": 7,
        "deadline_ms": system_clock() + 600_000,
    }
    return HandlerContext(**given | fields)


def cancel(context: HandlerContext) -> None:
    """Make `context.cancelled` true, as a cancelled dispatch or a stopping worker does."""
    mark_cancelled(context)


def _json_in(path: Path) -> Any:
    try:
        return decode(path.read_bytes())
    except OSError as error:
        raise EventError(f"cannot read {path}: {error.strerror or error}") from error
    except NotJsonError as error:
        raise EventError(f"{path} is {error}") from error

"""From the options of `fire`, `ingest` and `queue enqueue` to one TriggerEvent."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from harn_temporal.errors import UsageError

if TYPE_CHECKING:
    from harn_temporal.bindings import Binding
    from harn_temporal.events import TriggerEvent

STDIN = "-"
EVENT_PANEL = "The event"

SYNTHETIC = "x-harn-synthetic"
BINDING_ID = "x-harn-binding-id"


@dataclass(frozen=True, slots=True)
class EventOptions:
    """What the command line says about the event. `event` and `payload` are files or `-`."""

    payload: Annotated[
        str | None,
        typer.Option(
            "--payload",
            metavar="FILE",
            help="The provider's payload as JSON, `-` for stdin",
            rich_help_panel=EVENT_PANEL,
        ),
    ] = None
    event: Annotated[
        str | None,
        typer.Option(
            "--event",
            metavar="FILE",
            help="A whole trigger event as JSON, `-` for stdin",
            rich_help_panel=EVENT_PANEL,
        ),
    ] = None
    kind: Annotated[
        str | None,
        typer.Option(
            "--kind",
            metavar="KIND",
            help="The event's kind, such as issues.opened",
            rich_help_panel=EVENT_PANEL,
        ),
    ] = None
    header: Annotated[
        list[str] | None,
        typer.Option(
            "--header",
            metavar="NAME=VALUE",
            help="A header of the event; may be repeated",
            rich_help_panel=EVENT_PANEL,
        ),
    ] = None
    tenant: Annotated[
        str | None,
        typer.Option(
            "--tenant", metavar="ID", help="The event's tenant", rich_help_panel=EVENT_PANEL
        ),
    ] = None
    dedupe_key: Annotated[
        str | None,
        typer.Option(
            "--dedupe-key",
            metavar="KEY",
            help="Events with one key are dispatched once",
            rich_help_panel=EVENT_PANEL,
        ),
    ] = None

    def __post_init__(self) -> None:
        if self.dedupe_key is not None and not self.dedupe_key.strip():
            raise UsageError(
                "--dedupe-key is empty: all events with it would be one; leave it out to have the "
                "key made from the event"
            )
        if self.event is None:
            return
        given = {
            "--payload": self.payload,
            "--kind": self.kind,
            "--header": self.header,
            "--tenant": self.tenant,
        }
        if clashing := [name for name, value in given.items() if value]:
            raise UsageError(
                f"--event is a whole event, which {' and '.join(clashing)} cannot change; "
                "use --payload to build one from its parts"
            )


def build_event(
    options: EventOptions, *, provider: str, kind: str, trigger_id: str | None = None
) -> TriggerEvent:
    """The event that the options describe; `kind` holds where they name none.

    Without a file it is synthetic: an empty payload, and headers that say so. Raises UsageError
    for files and options that cannot be read, EventError for an event that cannot be ingested.
    """
    from harn_temporal.events import TriggerEvent, new_event
    from harn_temporal.redaction import redact

    if options.event is not None:
        event = TriggerEvent.from_json(read_json(options.event))
        changes: dict[str, Any] = {"headers": redact(event.headers)}
        if options.dedupe_key is not None:
            changes["dedupe_key"] = options.dedupe_key
        return event.model_copy(update=changes)
    headers = parse_headers(options.header)
    payload: Any = {}
    if options.payload is not None:
        payload = read_json(options.payload)
    else:
        headers[SYNTHETIC] = "true"
        if trigger_id is not None:
            headers[BINDING_ID] = trigger_id
    return new_event(
        provider=provider,
        kind=options.kind or kind,
        payload=payload,
        headers=headers,
        tenant_id=options.tenant,
        dedupe_key=options.dedupe_key,
    )


def kind_for(binding: Binding, options: EventOptions) -> str:
    """The event's kind where --kind does not say: the first that the trigger matches."""
    if options.kind or options.event is not None:
        return options.kind or ""
    if options.payload is not None and len(binding.events) != 1:
        known = ", ".join(binding.events) or f"every kind of {binding.provider}"
        raise UsageError(
            f"say with --kind what the payload is: {binding.trigger_id} matches {known}"
        )
    return binding.events[0] if binding.events else binding.kind


def parse_headers(given: Sequence[str] | None) -> dict[str, str]:
    headers = {}
    for text in given or ():
        name, separator, value = text.partition("=")
        if not separator or not name.strip():
            raise UsageError(f"--header {text!r} is not NAME=VALUE")
        name = name.strip()
        if any(letter.isspace() or not letter.isprintable() for letter in name):
            raise UsageError(
                f"--header {text!r}: a header's name has neither blanks nor control characters"
            )
        headers[name] = value
    return headers


def read_json(file: str) -> Any:
    """The JSON in a file, or on stdin. Raises UsageError with line and column of a mistake."""
    name = "stdin" if file == STDIN else file
    try:
        raw = sys.stdin.buffer.read() if file == STDIN else Path(file).read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {name}: {error.strerror or error}") from error
    try:
        return json.loads(raw.decode("utf-8-sig"), parse_constant=_refuse_constant)
    except UnicodeDecodeError as error:
        raise UsageError(
            f"{name} is not UTF-8 at byte {error.start + 1}: {error.reason}"
        ) from error
    except json.JSONDecodeError as error:
        raise UsageError(
            f"{name} is not JSON: {error.msg} at line {error.lineno}, column {error.colno}"
        ) from error
    except RecursionError as error:
        raise UsageError(f"{name} is nested too deeply") from error
    except ValueError as error:
        raise UsageError(f"{name} cannot be used: {error}") from error


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"JSON has no {name}")

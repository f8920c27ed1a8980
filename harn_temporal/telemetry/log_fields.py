"""What a log record says, as fields, without secrets; and the formatter for machines."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator, Mapping
from typing import Any

from harn_temporal.clock import rfc3339
from harn_temporal.redaction import REDACTED, is_redacted
from harn_temporal.telemetry import tracing

HANDLERS = "harn_temporal.handler"
"""The logger behind `context.log`: what it says is a handler's own text."""

WORKFLOWS = "temporalio.workflow"
"""The SDK's logger for workflow code, which puts details of the run behind our event names."""

_PLAIN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_IN_THE_MESSAGE = frozenset({"temporal_activity", "temporal_workflow"})
"""Extra fields of the SDK's loggers, which it puts into the message as well."""

_OUR_KEYS = frozenset({"binding_key", "fairness_key"})
"""Names of ours with a word of secrets in them, which are none."""

_EVENT = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
_CREDENTIALS = re.compile(r"\b(bearer|basic)\s+[^\s\"',;]+", re.IGNORECASE)


def extra_fields(record: logging.LogRecord) -> Iterator[tuple[str, Any]]:
    """The fields beyond the standard ones, but for None, with secrets blanked by their names."""
    for name, value in vars(record).items():
        if name not in _PLAIN and name not in _IN_THE_MESSAGE and value is not None:
            yield name, _safe(name, value)


def without_credentials(text: str) -> str:
    """`text` without what follows `Bearer` or `Basic`."""
    return _CREDENTIALS.sub(lambda found: f"{found[1]} {REDACTED}", text)


def event_name(record: logging.LogRecord) -> str | None:
    """The documented name of the event; None where the message is free text."""
    if record.name == WORKFLOWS:
        name = str(record.msg).partition(" (")[0]
    elif record.name.startswith("harn_temporal.") and not record.name.startswith(HANDLERS):
        name = str(record.msg)
    else:
        return None
    return name if _EVENT.fullmatch(name) and not record.args else None


class JsonFormatter(logging.Formatter):
    """One JSON object a line: `time`, `level`, `logger`, then `event` or `message`, then fields.

    An exception is `error_type` and `error`; its traceback shows with `tracebacks` only. Inside a
    trace, `traceparent` is that of the current span.
    """

    def __init__(self, *, tracebacks: bool) -> None:
        super().__init__()
        self._tracebacks = tracebacks

    def format(self, record: logging.LogRecord) -> str:
        event = event_name(record)
        found: dict[str, Any] = {
            "time": rfc3339(int(record.created * 1000)),
            "level": record.levelname.lower(),
            "logger": record.name,
        }
        if event is None:
            found["message"] = without_credentials(record.getMessage())
        else:
            found["event"] = event
        if record.exc_info and record.exc_info[1] is not None:
            found["error_type"] = type(record.exc_info[1]).__name__
            found["error"] = without_credentials(str(record.exc_info[1]))
            if self._tracebacks:
                found["traceback"] = without_credentials(self.formatException(record.exc_info))
        traceparent = tracing.current_traceparent()
        if traceparent is not None:
            found["traceparent"] = traceparent
        for name, value in extra_fields(record):
            found.setdefault(name, value)
        return json.dumps(found, ensure_ascii=False, default=str)


def _safe(name: str, value: Any) -> Any:
    if is_redacted(name) and name not in _OUR_KEYS:
        return REDACTED
    if isinstance(value, Mapping):
        return {str(each): _safe(str(each), inner) for each, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_safe(name, inner) for inner in value]
    if isinstance(value, str):
        return without_credentials(value)
    return value if isinstance(value, bool | int | float) else without_credentials(str(value))

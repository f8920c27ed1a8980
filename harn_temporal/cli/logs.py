"""Log records of a command, on stderr, one line each."""

from __future__ import annotations

import logging
from datetime import UTC, datetime

_PLAIN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_IN_THE_MESSAGE = frozenset({"temporal_activity", "temporal_workflow"})
"""Extra fields of the SDK's loggers, which it puts into the message as well."""

_NOISY = "temporalio.activity"
"""Warns of each failed attempt, which the EventLog and the Web UI show already."""

_HANDLERS = "harn_temporal.handler"
"""The logger behind `context.log`."""

_CORE_RETRIES = "temporalio.core-sdk_core::temporalio_client::retry"
_OUTAGE_SECONDS = 30.0
_SHOWN = 240
"""Characters of what the core says; the rest is a dump of its error's structure."""


class LineFormatter(logging.Formatter):
    """Time, level, logger, message, then the record's extra fields as `name=value`, but for None.

    An exception is its type and text; the traceback shows with `tracebacks` only.
    """

    def __init__(self, *, tracebacks: bool) -> None:
        super().__init__()
        self._tracebacks = tracebacks

    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created, UTC).strftime("%H:%M:%S")
        parts = [moment, record.levelname.lower(), record.name, record.getMessage()]
        extra = vars(record).keys() - _PLAIN - _IN_THE_MESSAGE
        fields = [(key, value) for key, value in vars(record).items() if key in extra]
        parts += [f"{key}={value}" for key, value in fields if value is not None]
        if record.exc_info and record.exc_info[1] is not None:
            error = record.exc_info[1]
            parts.append(f"({type(error).__name__}: {error})")
            if self._tracebacks:
                parts.append("\n" + self.formatException(record.exc_info))
        return " ".join(parts)


class OutageFilter(logging.Filter):
    """Of what the SDK's core says of each call that is retried, one short line a half-minute.

    While a service is away that is several long ones a second, which hide everything else.
    """

    def __init__(self) -> None:
        super().__init__()
        self._until = 0.0

    def filter(self, record: logging.LogRecord) -> bool:
        if record.name != _CORE_RETRIES:
            return True
        if record.created < self._until:
            return False
        self._until = record.created + _OUTAGE_SECONDS
        text = record.getMessage()
        record.msg, record.args = (text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"), None
        return True


def configure_logging(*, debug: bool) -> None:
    """Warnings of every library, and what handlers log through their context from INFO on.

    With `debug` everything of ours, and tracebacks.
    """
    handler = logging.StreamHandler()
    handler.setFormatter(LineFormatter(tracebacks=debug))
    if not debug:
        handler.addFilter(OutageFilter())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("harn_temporal").setLevel(logging.DEBUG if debug else logging.WARNING)
    logging.getLogger(_HANDLERS).setLevel(logging.DEBUG if debug else logging.INFO)
    logging.getLogger(_NOISY).setLevel(logging.WARNING if debug else logging.ERROR)

"""Log records of a command, on stderr, one line each."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import TextIO

from harn_temporal.cli.output import standard_stream
from harn_temporal.telemetry.log_fields import (
    HANDLERS,
    JsonFormatter,
    extra_fields,
    without_credentials,
)

_NOISY = "temporalio.activity"
"""Warns of each failed attempt, which the EventLog and the Web UI show already."""

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
        message = without_credentials(record.getMessage())
        parts = [moment, record.levelname.lower(), record.name, message]
        parts += [f"{name}={value}" for name, value in extra_fields(record)]
        if record.exc_info and record.exc_info[1] is not None:
            error = record.exc_info[1]
            parts.append(without_credentials(f"({type(error).__name__}: {error})"))
            if self._tracebacks:
                parts.append("\n" + without_credentials(self.formatException(record.exc_info)))
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


class StderrHandler(logging.StreamHandler[TextIO]):
    """Writes to what stderr is at the moment, though a handler may have closed what it was."""

    def emit(self, record: logging.LogRecord) -> None:
        self.stream = standard_stream("stderr")
        super().emit(record)


def configure_logging(*, debug: bool, as_json: bool = False, level: str | None = None) -> None:
    """Warnings of every library, and what handlers log through their context from INFO on.

    `level` is that of our own records instead. With `debug` everything of ours, and tracebacks.
    """
    handler = StderrHandler()
    formatter: logging.Formatter = LineFormatter(tracebacks=debug)
    handler.setFormatter(JsonFormatter(tracebacks=debug) if as_json else formatter)
    if not debug:
        handler.addFilter(OutageFilter())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    ours = level.upper() if level is not None else "DEBUG" if debug else None
    logging.getLogger("harn_temporal").setLevel(ours or logging.WARNING)
    logging.getLogger(HANDLERS).setLevel(ours or logging.INFO)
    logging.getLogger(_NOISY).setLevel(logging.WARNING if debug else logging.ERROR)

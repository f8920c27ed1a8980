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


class LineFormatter(logging.Formatter):
    """Time, level, logger, message, then the record's extra fields as `name=value`.

    An exception is its type and text; the traceback shows with `tracebacks` only.
    """

    def __init__(self, *, tracebacks: bool) -> None:
        super().__init__()
        self._tracebacks = tracebacks

    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created, UTC).strftime("%H:%M:%S")
        parts = [moment, record.levelname.lower(), record.name, record.getMessage()]
        extra = vars(record).keys() - _PLAIN - _IN_THE_MESSAGE
        parts += [f"{key}={value}" for key, value in vars(record).items() if key in extra]
        if record.exc_info and record.exc_info[1] is not None:
            error = record.exc_info[1]
            parts.append(f"({type(error).__name__}: {error})")
            if self._tracebacks:
                parts.append("\n" + self.formatException(record.exc_info))
        return " ".join(parts)


def configure_logging(*, debug: bool) -> None:
    """Warnings of every library, and what handlers log through their context from INFO on.

    With `debug` everything of ours, and tracebacks.
    """
    handler = logging.StreamHandler()
    handler.setFormatter(LineFormatter(tracebacks=debug))
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("harn_temporal").setLevel(logging.DEBUG if debug else logging.WARNING)
    logging.getLogger(_HANDLERS).setLevel(logging.DEBUG if debug else logging.INFO)
    logging.getLogger(_NOISY).setLevel(logging.WARNING if debug else logging.ERROR)

"""Log lines on stderr."""

from __future__ import annotations

import logging
import re

import pytest

from harn_temporal.cli.logs import LineFormatter


@pytest.fixture
def record():
    error = OSError("no disk")
    return logging.makeLogRecord(
        {
            "name": "harn_temporal.pump",
            "levelno": logging.WARNING,
            "levelname": "WARNING",
            "msg": "pump_waits",
            "exc_info": (OSError, error, None),
            "pause_s": 1,
            "temporal_activity": {"id": "3"},
        }
    )


def test_a_line_has_the_extra_fields_and_no_traceback(record):
    text = LineFormatter(tracebacks=False).format(record)

    assert re.fullmatch(
        r"\d\d:\d\d:\d\d warning harn_temporal\.pump pump_waits pause_s=1 \(OSError: no disk\)",
        text,
    )


def test_with_debug_the_traceback_follows(record):
    text = LineFormatter(tracebacks=True).format(record)

    assert text.endswith("(OSError: no disk) \nOSError: no disk")

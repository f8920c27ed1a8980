"""Log lines on stderr."""

from __future__ import annotations

import logging
import re

import pytest

from harn_temporal.cli.logs import LineFormatter, OutageFilter, configure_logging


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


@pytest.fixture
def kept_loggers():
    names = ("", "harn_temporal", "harn_temporal.handler", "temporalio.activity")
    loggers = [(logging.getLogger(name), logging.getLogger(name).level) for name in names]
    handlers = logging.getLogger().handlers[:]
    logging.getLogger().handlers[:] = []  # those of pytest are closed by who replaces them
    yield
    for logger, level in loggers:
        logger.setLevel(level)
    logging.getLogger().handlers[:] = handlers


def test_what_a_handler_logs_is_shown(kept_loggers, capsys):
    configure_logging(debug=False)
    logging.getLogger("harn_temporal.handler").info("attempt 1 of 3")
    logging.getLogger("harn_temporal.pump").info("of no interest")

    shown = capsys.readouterr().err.splitlines()
    assert [line.split(" ", 1)[1] for line in shown] == [
        "info harn_temporal.handler attempt 1 of 3"
    ]


def test_fields_without_a_value_are_left_out(record):
    record.tenant_id = None

    assert "tenant_id" not in LineFormatter(tracebacks=False).format(record)


def test_an_outage_is_one_short_line_a_half_minute():
    outage = OutageFilter()

    def core(created, name="temporalio.core-sdk_core::temporalio_client::retry"):
        record = logging.makeLogRecord({"name": name, "msg": "%s", "args": ("x" * 500,)})
        record.created = created
        return record

    first = core(100.0)
    assert [outage.filter(each) for each in (first, core(101.0), core(129.9), core(130.0))] == [
        True,
        False,
        False,
        True,
    ]
    assert first.getMessage() == "x" * 240 + "…"
    assert outage.filter(core(100.0, "temporalio.worker"))

"""Log records for machines: one JSON object a line, with stable names, without secrets."""

from __future__ import annotations

import json
import logging

import pytest

from harn_temporal.cli.logs import LineFormatter
from harn_temporal.telemetry import tracing
from harn_temporal.telemetry.log_fields import JsonFormatter

LIB = """
import logging


def fine(event, context):
    context.log.info("got it", extra={"api_token": "hunter2", "binding_key": "mine"})
    logging.getLogger("shop").warning("sent with Authorization: Bearer hunter2")


def broken(event):
    raise ValueError("no")
"""
SECRET = "hunter2"


def record(message, *, name="harn_temporal.pump", **extra):
    return logging.makeLogRecord(
        {"name": name, "msg": message, "levelno": 30, "levelname": "WARNING", "created": 0.5}
        | extra
    )


def as_json(found, **options):
    text = JsonFormatter(tracebacks=options.get("tracebacks", False)).format(found)
    assert "\n" not in text
    return json.loads(text)


def test_an_event_has_its_name_and_its_fields():
    assert as_json(record("pump_waits", error="away", pause_s=1.5, tenant_id=None)) == {
        "time": "1970-01-01T00:00:00.500Z",
        "level": "warning",
        "logger": "harn_temporal.pump",
        "event": "pump_waits",
        "error": "away",
        "pause_s": 1.5,
    }


@pytest.mark.parametrize("name", ["harn_temporal.handler", "temporalio.activity", "shop"])
def test_what_others_say_is_a_message(name):
    found = as_json(record("pump_waits", name=name))
    assert found["message"] == "pump_waits"
    assert "event" not in found


def test_a_workflow_logs_events_too():
    details = {"workflow_id": "consume/x"}
    found = as_json(
        record(
            f"claim_lost ({details})",
            name="temporalio.workflow",
            temporal_workflow=details,
            claim_id="c",
        )
    )
    assert (found["event"], found["claim_id"]) == ("claim_lost", "c")
    assert "temporal_workflow" not in found


@pytest.mark.parametrize("formatter", [JsonFormatter, LineFormatter])
def test_secrets_are_blanked(formatter):
    text = formatter(tracebacks=True).format(
        record(
            "sent with Bearer hunter2",
            name="shop",
            api_token=SECRET,
            headers={"X-Api-Key": SECRET, "content-type": "text/plain"},
            said=["Basic hunter2", {"cookie": SECRET}],
            binding_key="fine@v1",
            exc_info=(OSError, OSError("refused: Bearer hunter2"), None),
        )
    )
    assert SECRET not in text
    assert "[redacted]" in text
    for kept in ("fine@v1", "text/plain", "refused: Bearer"):
        assert kept in text


def test_an_exception_is_its_type_and_text():
    with pytest.raises(OSError, match="no disk") as raised:
        raise OSError("no disk\nat all")
    broken = record("sweep_failed", exc_info=(raised.type, raised.value, raised.tb))
    found = as_json(broken)
    assert (found["error_type"], found["error"]) == ("OSError", "no disk\nat all")
    assert "traceback" not in found
    assert "raise OSError" in as_json(broken, tracebacks=True)["traceback"]


def test_fields_that_are_no_json_are_text():
    found = as_json(record("sweep_failed", where=ValueError("x"), name="harn_temporal.sweep"))
    assert found["where"] == "x"


def test_a_field_never_hides_what_each_record_has():
    assert as_json(record("sweep_failed", level="mine", time="never"))["level"] == "warning"


def test_inside_a_trace_a_record_names_its_span(spans):
    with tracing.span(tracing.ATTEMPT, attributes={}) as span:
        assert as_json(record("pump_waits"))["traceparent"] == span.traceparent
    assert "traceparent" not in as_json(record("pump_waits"))


@pytest.fixture
def package(make_package, trigger):
    return make_package(
        LIB,
        trigger("fine", "handlers::fine"),
        trigger("broken", "handlers::broken", 'retry = { max = 1, backoff = "immediate" }'),
    )


def lines(stderr):
    return [json.loads(line) for line in stderr.splitlines()]


def test_a_dispatch_logs_json_and_no_secret(package, program, temporal_address):
    done = program(
        "fire",
        "fine",
        "--wait",
        "--header",
        f"x-api-token={SECRET}",
        "--address",
        temporal_address,
        "--log-format",
        "json",
        "--log-level",
        "info",
    )
    assert done.returncode == 0, done.stderr
    found = lines(done.stderr)
    assert SECRET not in done.stderr
    assert [each["event"] for each in found if "event" in each] == [
        "event_ingested",
        "attempt_ended",
    ]
    ingested, ended = (each for each in found if "event" in each)
    assert (ingested["trigger_id"], ingested["status"]) == ("fine", "accepted")
    assert (ended["trigger_id"], ended["attempt"], ended["status"]) == ("fine", 1, "success")
    assert ended["event_id"] == ingested["event_id"]
    [said] = [each for each in found if each["logger"] == "harn_temporal.handler"]
    assert (said["message"], said["api_token"]) == ("got it", "[redacted]")
    [sent] = [each for each in found if each["logger"] == "shop"]
    assert sent["message"] == "sent with Authorization: Bearer [redacted]"


def test_a_failed_dispatch_logs_a_warning_by_default(package, program, temporal_address):
    done = program(
        "fire",
        "broken",
        "--wait",
        "--address",
        temporal_address,
        HARN_ORCHESTRATOR_LOG_FORMAT="json",
    )
    assert done.returncode == 1
    assert [each["event"] for each in lines(done.stderr)] == ["attempt_failed"]


def test_level_error_leaves_warnings_out(package, program, temporal_address):
    done = program(
        "--log-level", "error", "fire", "broken", "--wait", "--address", temporal_address
    )
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.parametrize(
    ("arguments", "environment", "said"),
    [
        (["--log-format", "xml"], {}, "--log-format 'xml' is none of text, json"),
        (["--log-level", "loud"], {}, "--log-level 'loud' is none of debug, info"),
        ([], {"HARN_ORCHESTRATOR_LOG_LEVEL": "loud"}, "HARN_ORCHESTRATOR_LOG_LEVEL is 'loud'"),
        ([], {"HARN_OTEL_ENDPOINT": "collector"}, "HARN_OTEL_ENDPOINT is no http:// or https://"),
    ],
)
def test_a_word_that_is_none_is_a_mistake_of_usage(package, program, arguments, environment, said):
    done = program("fire", "fine", *arguments, **environment)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr

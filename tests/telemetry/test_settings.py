"""When traces are exported, and that nothing is imported when they are not."""

from __future__ import annotations

import subprocess
import sys

import pytest

from harn_temporal.errors import UsageError
from harn_temporal.telemetry.otel_settings import OtelSettings, read_otel_settings

STANDARD = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://there:4318"}


@pytest.mark.parametrize(
    "environ",
    [
        {},
        {"HARN_OTEL_ENDPOINT": " "},
        {"OTEL_SERVICE_NAME": "shop"},
        STANDARD | {"OTEL_TRACES_EXPORTER": "none"},
        STANDARD | {"OTEL_SDK_DISABLED": "True"},
        {"HARN_OTEL_ENDPOINT": "http://there:4318", "OTEL_SDK_DISABLED": "true"},
    ],
)
def test_no_traces(environ):
    assert read_otel_settings(environ) is None


def test_the_standard_variables_are_left_to_the_exporter():
    assert read_otel_settings(STANDARD) == OtelSettings("harn-temporal")
    traces = {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://there/x", "OTEL_SERVICE_NAME": "shop"}
    assert read_otel_settings(traces) == OtelSettings("shop")


def test_harns_variables_come_first():
    ours = {
        "HARN_OTEL_ENDPOINT": "http://here:4318/",
        "HARN_OTEL_SERVICE_NAME": "ours",
        "OTEL_SERVICE_NAME": "theirs",
        "HARN_OTEL_HEADERS": "Authorization=Bearer a=b, x-tenant=acme;\ny=1",
        "HARN_OTEL_SAMPLE_RATIO": "0.25",
    }
    assert read_otel_settings(STANDARD | ours) == OtelSettings(
        "ours",
        "http://here:4318/v1/traces",
        {"authorization": "Bearer a=b", "x-tenant": "acme", "y": "1"},
        0.25,
    )


def test_an_endpoint_that_has_the_path_keeps_it():
    found = read_otel_settings({"HARN_OTEL_ENDPOINT": "https://here/otlp/v1/traces"})
    assert found is not None
    assert found.endpoint == "https://here/otlp/v1/traces"


@pytest.mark.parametrize(
    ("environ", "said"),
    [
        ({"HARN_OTEL_ENDPOINT": "here:4318"}, "HARN_OTEL_ENDPOINT"),
        ({"HARN_OTEL_ENDPOINT": "http://h", "HARN_OTEL_SAMPLE_RATIO": "2"}, "SAMPLE_RATIO is '2'"),
        ({"HARN_OTEL_ENDPOINT": "http://h", "HARN_OTEL_SAMPLE_RATIO": "x"}, "SAMPLE_RATIO is 'x'"),
        (STANDARD | {"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "'grpc'.*http/protobuf only"),
    ],
)
def test_mistakes_are_told(environ, said):
    with pytest.raises(UsageError, match=said):
        read_otel_settings(environ)


def test_headers_that_are_none_are_not_repeated():
    with pytest.raises(UsageError) as raised:
        read_otel_settings({"HARN_OTEL_ENDPOINT": "http://h", "HARN_OTEL_HEADERS": "hunter2"})
    assert "hunter2" not in str(raised.value)


@pytest.mark.parametrize(
    "arguments", [["--help"], ["metrics", "--help"], ["fire", "plain"], ["up", "--help"]]
)
def test_nothing_of_opentelemetry_is_imported_unasked(arguments, make_package, trigger, program):
    package = make_package("def plain(event): ...", trigger("plain", "handlers::plain"))
    code = (
        "import sys\n"
        "from harn_temporal.entry import run\n"
        f"code = run({arguments!r})\n"
        "found = [n for n in sys.modules if n.partition('.')[0] in ('opentelemetry', 'requests')]\n"
        "print(code, found, file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=package.folder,
        env=program.environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stderr.splitlines()[-1] == "0 []"

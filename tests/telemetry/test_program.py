"""A real worker: its metrics address, its spans, and its end."""

from __future__ import annotations

import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

LIB = """
def fine(event):
    return 1
"""
TRACE = "0af7651916cd43dd8448eb211c80319c"
TRACEPARENT = f"traceparent=00-{TRACE}-b7ad6b7169203331-01"


@pytest.fixture
def package(make_package, trigger):
    return make_package(LIB, trigger("fine", "handlers::fine"), trigger("queued", "handlers::fine"))


@pytest.fixture
def worker(package, program, temporal_address):
    """Starts `worker`, and gives it with the lines it printed until it was ready."""
    started = []

    def start(*arguments, **environment):
        process = subprocess.Popen(
            [
                str(Path(sys.executable).with_name("harn-temporal")),
                *("worker", "--state-dir", str(program.state_dir), "--address", temporal_address),
                *arguments,
            ],
            cwd=program.folder,
            env=program.environment | environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process, read_until(process, "Ready.")

    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()


def read_until(process, text):
    lines = []
    for line in process.stdout:
        lines.append(line.rstrip("\n"))
        if text in line:
            return lines
    raise AssertionError(f"{text!r} did not come; there was {lines}")


def test_a_worker_serves_metrics_and_sends_what_is_left_when_it_ends(worker, program, collector):
    process, lines = worker("--metrics-port", "0", HARN_OTEL_ENDPOINT=collector.url)
    [url] = [line.split()[1] for line in lines if line.startswith("Metrics ")]
    fired = program("fire", "fine", "--header", TRACEPARENT)
    read_until(process, "fine@v1 succeeded")
    text = urllib.request.urlopen(url).read().decode()
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=40)

    assert (fired.returncode, process.returncode) == (0, 0), errors
    labels = '{handler_kind="local",outcome="succeeded",trigger_id="fine"}'
    assert f"harn_trigger_dispatched_total{labels} 1.0\n" in text
    assert "\ntemporal_" in text
    assert "_created" not in text
    assert {span.trace_id.hex() for span in collector.spans} == {TRACE}
    assert {span.name for span in collector.spans} == {"harn.admit", "harn.attempt"}


def test_a_worker_serves_no_metrics_unasked(worker):
    _, lines = worker()
    assert not any("Metrics" in line for line in lines)


def stopped(process):
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=40)
    assert process.returncode == 0, errors
    return errors


def test_where_no_worker_pumps_one_is_told_to_serve_the_store(worker, program):
    served, warned = {}, {}
    for options in ((), ("--store-metrics",)):
        process, lines = worker("--no-pump", "--metrics-port", "0", *options)
        [url] = [line.split()[1] for line in lines if line.startswith("Metrics ")]
        served[options] = (
            "\nharn_dispatcher_dlq_depth 0.0\n" in urllib.request.urlopen(url).read().decode()
        )
        warned[options] = "give one of them --store-metrics" in stopped(process)
    assert served == {(): False, ("--store-metrics",): True}
    assert warned == {(): True, ("--store-metrics",): False}

    process, _ = worker()
    program("fire", "fine")
    read_until(process, "fine@v1 succeeded")
    stopped(process)
    process, _ = worker("--no-pump", "--metrics-port", "0")
    assert "--store-metrics" not in stopped(process)  # a pump was seen just now


def test_a_job_that_was_enqueued_is_one_trace(package, program, collector, temporal_address):
    put = program(
        *("queue", "enqueue", "triage", "queued", "--header", TRACEPARENT),
        HARN_OTEL_ENDPOINT=collector.url,
    )
    assert put.returncode == 0, put.stderr
    [ingest] = collector.spans
    drained = program(
        *("queue", "drain", "triage", "--address", temporal_address),
        HARN_OTEL_ENDPOINT=collector.url,
    )
    assert drained.returncode == 0, drained.stderr
    [attempt] = [span for span in collector.spans if span.name == "harn.attempt"]
    assert attempt.trace_id.hex() == ingest.trace_id.hex() == TRACE
    assert attempt.parent_span_id == ingest.span_id

"""`up` and `worker`: what they say, what they do, and how they end."""

from __future__ import annotations

import inspect
import json
import signal
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from harn_temporal.cli.worker import worker
from harn_temporal.temporal.embedded import running_server
from harn_temporal.temporal.embedded_files import EmbeddedFiles
from harn_temporal.temporal.locks import is_held
from harn_temporal.worker import DEFAULT_MAX_CONCURRENT


def errors(program):
    return (program.folder / "stderr").read_text()


def test_up_says_what_runs_and_shows_each_dispatch(program, read_until, eventually):
    state_dir = program.folder / ".harn/orchestrator"
    process = program.start("up")
    said = read_until(process, "Ready")

    server = running_server(state_dir)
    assert said[0] == f"Web UI    {server.ui_url}"
    assert f"Temporal  {server.address} (embedded)" in said
    assert f"State     {state_dir}" in said
    assert any("new-issue@v1" in line and "svix, 7 attempts" in line for line in said)
    assert "nothing ticks parked (cron) yet" in errors(program)

    fired = program("fire", "flaky")
    assert "no worker" not in fired.err
    lines = read_until(process, "succeeded")
    assert lines == [
        "issues.closed -> flaky@v1 failed in attempt 1, again at once: ValueError: attempt 1 fails",
        "issues.closed -> flaky@v1 failed in attempt 2, again at once: ValueError: attempt 2 fails",
        "issues.closed -> flaky@v1 succeeded, 3 attempts",
    ]
    program("fire", "broken")
    assert read_until(process, "broken@v1") == [
        "webhook -> broken@v1 dlq, 1 attempt: RuntimeError: never works"
    ]

    shared = program("fire", "new-issue", "--wait", "--json")
    assert shared.code == 0, shared.err
    assert running_server(state_dir) == server

    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 0
    assert "Traceback" not in errors(program)
    files = EmbeddedFiles(state_dir)
    eventually(lambda: not is_held(files.server_lock))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_drains_what_runs(program, temporal_address, read_until, eventually, number):
    process = program.start("worker", "--address", temporal_address)
    read_until(process, "Ready")
    program("fire", "slow")
    eventually((program.folder / "begun").exists)

    process.send_signal(number)
    eventually(lambda: "stopping" in errors(program))
    (program.folder / "go").touch()

    assert process.wait(30) == 0
    assert "slow -> slow@v1 succeeded, 1 attempt" in process.stdout.read()
    assert "Traceback" not in errors(program)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_ends_at_once(program, temporal_address, read_until, eventually, number):
    process = program.start("worker", "--address", temporal_address)
    read_until(process, "Ready")
    program("fire", "stuck")
    eventually((program.folder / "begun").exists)
    process.send_signal(number)
    eventually(lambda: "stopping" in errors(program))

    process.send_signal(number)

    assert process.wait(5) == 128 + number


SHORT_GRACE = """
import functools
from datetime import timedelta

from harn_temporal import worker
from harn_temporal.entry import main

worker.WorkerOptions = functools.partial(worker.WorkerOptions, grace=timedelta(seconds=1))
main()
"""


def test_a_thread_that_never_ends_does_not_hold_up_the_drain(
    program, temporal_address, read_until, eventually
):
    patient = replace(program, command=(sys.executable, "-c", SHORT_GRACE))
    process = patient.start("worker", "--address", temporal_address)
    read_until(process, "Ready")
    program("fire", "stuck")
    eventually((program.folder / "begun").exists)

    process.send_signal(signal.SIGTERM)

    assert process.wait(30) == 0


def test_a_worker_without_pump_starts_nothing_by_itself(program, temporal_address, read_until):
    process = program.start("worker", "--no-pump", "--address", temporal_address)
    read_until(process, "Ready")

    fired = program("fire", "new-issue")
    assert "no worker of package shop" in fired.err

    waited = program("fire", "flaky", "--wait", "--json", "--address", temporal_address)
    assert waited.json["status"] == "succeeded"
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 0
    assert "new-issue" not in process.stdout.read()


def test_the_default_of_max_concurrent_is_the_workers_own():
    signature = inspect.signature(worker)

    assert signature.parameters["max_concurrent"].default == DEFAULT_MAX_CONCURRENT


def test_without_service_a_worker_exits_3_within_seconds(program):
    ran = program("worker", "--address", "127.0.0.1:1")

    assert ran.code == 3
    assert ran.out == ""
    assert "127.0.0.1:1" in ran.err


def test_a_signal_while_it_starts_ends_it_with_0(program, eventually):
    process = program.start("worker", "--address", "127.0.0.1:1")
    # The handlers of signals are in place before the service is looked for.
    eventually(lambda: _catches(process.pid, signal.SIGTERM))

    process.send_signal(signal.SIGTERM)

    assert process.wait(5) == 0


def _status(pid):
    return Path(f"/proc/{pid}/status").read_text()


def _catches(pid, number):
    [mask] = [line.split()[1] for line in _status(pid).splitlines() if line.startswith("SigCgt")]
    return bool(int(mask, 16) >> (number - 1) & 1)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_fire_and_wait_ends_in_order_when_interrupted(
    program, temporal_address, eventually, number
):
    process = program.start("fire", "slow", "--wait", "--address", temporal_address)
    eventually((program.folder / "begun").exists)

    process.send_signal(number)
    # Said before the handler has ended, which may take the whole grace period.
    eventually(lambda: "stopping: handlers may end what they do" in errors(program))
    eventually(lambda: "goes on with the next worker" in errors(program))
    (program.folder / "go").touch()

    assert process.wait(30) == 128 + number
    assert "Traceback" not in errors(program)
    again = program("fire", "new-issue", "--wait", "--json", "--address", temporal_address)
    assert json.loads(again.out)["status"] == "succeeded"

"""What tests of several areas share: one real Temporal server for the whole session."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from temporalio.client import Client

from harn_temporal.temporal.converter import data_converter
from harn_temporal.temporal.server_process import SETTINGS, find_binary

SERVER_START_S = 60
RUN_MARK = "TESTS_OF_RUN"


@pytest.fixture(scope="session", autouse=True)
def _interrupts_reach_programs() -> None:
    """A shell starts what runs in its background with SIGINT ignored, and programs inherit that."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def _no_survivors() -> Iterator[None]:
    """Servers and workers of a run that is killed end with it (where there is a /proc)."""
    value = f"{os.getpid()}-{secrets.token_hex(4)}"
    os.environ[RUN_MARK] = value
    watcher = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("survivors.py")), f"{RUN_MARK}={value}"],
        env={},  # without the mark, so that it does not end itself
        stdin=subprocess.PIPE,
        start_new_session=True,  # what ends the run's process group leaves it alone
    )
    yield
    watcher.communicate(b"done")
    del os.environ[RUN_MARK]


@pytest.fixture(scope="session")
def temporal_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server in memory, with the settings of the embedded one."""
    port = _free_port()
    log_path = tmp_path_factory.mktemp("temporal") / "server.log"
    arguments = [str(find_binary()), "server", "start-dev", "--headless", "--log-level", "error"]
    arguments += ["--ip", "127.0.0.1", "--port", str(port)]
    arguments += [part for setting in SETTINGS for part in setting]
    with log_path.open("wb") as log:
        process = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + SERVER_START_S
        while not _listens(port):
            if process.poll() is not None or time.monotonic() > deadline:
                pytest.fail(f"the Temporal server did not start: {log_path.read_text()[-2000:]}")
            time.sleep(0.02)
        yield f"127.0.0.1:{port}"
    finally:
        process.terminate()
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@pytest.fixture
async def temporal_client(temporal_address: str) -> Client:
    return await connected(temporal_address)


async def connected(address: str) -> Client:
    """A client, as soon as the server that has begun to listen also answers."""
    deadline = time.monotonic() + SERVER_START_S
    while True:
        try:
            return await Client.connect(address, data_converter=data_converter)
        except RuntimeError:  # what the SDK raises while the server starts
            if time.monotonic() > deadline:
                raise


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0

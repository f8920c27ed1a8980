"""A test run that is killed takes its servers with it; other programs are left alone."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RUN = """
import os
import subprocess
import sys

import pytest


@pytest.mark.timeout(300)
def test_is_killed(temporal_address):
    started = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"])
    with open(os.environ["STARTED"], "w") as file:
        file.write(f"{temporal_address} {started.pid}\\n")
    started.wait()
"""


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="processes are found in /proc")
def test_a_killed_run_leaves_nothing_running(tmp_path):
    (tmp_path / "test_one.py").write_text(RUN)
    (tmp_path / "conftest.py").write_text((ROOT / "tests/conftest.py").read_text())
    (tmp_path / "survivors.py").write_text((ROOT / "tests/survivors.py").read_text())
    started = tmp_path / "started"
    os.mkfifo(started)
    bystander = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    run = subprocess.Popen(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)],
        cwd=tmp_path,
        env=os.environ | {"STARTED": str(started)},
        stdout=subprocess.DEVNULL,
    )
    try:
        address, child = started.read_text().split()
        pid = os.pidfd_open(int(child))
        try:
            run.send_signal(signal.SIGKILL)
            run.wait()

            assert _ended(pid)
            assert not _listens(address)
            assert bystander.poll() is None
        finally:
            os.close(pid)
    finally:
        run.kill()
        bystander.communicate(b"\n")


def _ended(descriptor: int) -> bool:
    """Whether the process of a pidfd has ended, waited for."""
    return bool(select.select([descriptor], [], [], 20)[0])


def _listens(address: str) -> bool:
    """Whether a server still listens, once it had the time to end."""
    host, port = address.split(":")
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex((host, int(port))) != 0:
                return False
    return True

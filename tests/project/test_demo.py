"""The demo, as `make demo` runs it: in CI, and at a terminal until Ctrl-C."""

import os
import pty
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from harn_temporal.temporal.embedded import running_server


@pytest.fixture
def demo(root: Path) -> Path:
    return root / "examples/github-triage/demo.sh"


@pytest.fixture
def environment(user_environment: dict[str, str], tmp_path: Path) -> dict[str, str]:
    return user_environment | {"HARN_ORCHESTRATOR_STATE_DIR": str(tmp_path / "state")}


def assert_story_is_told(said: str) -> None:
    assert re.search(r"^Web UI +http://127\.0\.0\.1:\d+\r?$", said, re.MULTILINE)
    assert re.search(r"dispatch_succeeded +new-issue@v1 attempt 1", said)
    assert '"add_labels":["bug"]' in said
    assert re.search(r"dispatch_succeeded +notify-channel@v1 attempt 3", said)
    assert sorted(re.findall(r"attempt_recorded +(\S+) attempt (\d)", said)) == [
        ("new-issue@v1", "1"),
        ("notify-channel@v1", "1"),
        ("notify-channel@v1", "2"),
        ("notify-channel@v1", "3"),
    ]
    assert said.count('"outcome":"failed"') == 2
    assert re.search(r"^ok +temporal +the embedded server answers", said, re.MULTILINE)


def assert_server_goes(state_dir: Path) -> None:
    """Its supervisor stops it once the last command has left."""
    deadline = time.monotonic() + 30
    while running_server(state_dir) is not None:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_ends_by_itself_where_nobody_watches(
    demo: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    done = subprocess.run(
        [demo], env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        check=False, timeout=110,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert_story_is_told(done.stdout)
    assert_server_goes(tmp_path / "state")


def test_goes_on_at_a_terminal_until_ctrl_c(
    demo: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    controller, terminal = pty.openpty()
    process = subprocess.Popen(
        [demo], env=environment, stdin=terminal, stdout=terminal, stderr=terminal,
        start_new_session=True,
    )  # fmt: skip
    os.close(terminal)
    said = ""
    try:
        while "Ctrl-C stops the demo." not in said:
            said += os.read(controller, 65536).decode()
        assert process.poll() is None
        os.killpg(process.pid, signal.SIGINT)
        while chunk := _read(controller):
            said += chunk
        assert process.wait(60) == 0, said
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        os.close(controller)
    assert "stopping: handlers may end what they do" in said
    assert "a second signal" in said
    assert_server_goes(tmp_path / "state")


def _read(controller: int) -> str:
    """What comes next; empty once nobody has the terminal open any more."""
    try:
        return os.read(controller, 65536).decode(errors="replace")
    except OSError:
        return ""

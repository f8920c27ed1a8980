"""Commands that run at once on one state dir, and what a crash of one does to the others."""

from __future__ import annotations

import os
import signal

import pytest

from harn_temporal.temporal.embedded import running_server
from harn_temporal.temporal.embedded_files import EmbeddedFiles
from harn_temporal.temporal.locks import is_held


@pytest.fixture
def files(program):
    return EmbeddedFiles(program.folder / ".harn/orchestrator")


def test_commands_at_once_on_a_fresh_state_dir_all_succeed(program, files, eventually):
    running = [program.start("fire", name, "--wait", "--json") for name in ("flaky", "new-issue")]

    assert [process.wait(60) for process in running] == [0, 0]
    eventually(lambda: not is_held(files.server_lock))


def test_a_killed_owner_leaves_no_server_and_blocks_nobody(program, files, read_until, eventually):
    owner = program.start("up")
    read_until(owner, "Ready")
    server = running_server(files.state_dir)

    owner.send_signal(signal.SIGKILL)
    owner.wait(10)

    assert program("fire", "flaky", "--wait").code == 0
    eventually(lambda: not is_held(files.server_lock))
    with pytest.raises(ProcessLookupError):
        os.kill(server.pid, 0)


def test_up_goes_on_when_its_server_is_killed(program, files, read_until, eventually):
    process = program.start("up")
    read_until(process, "Ready")
    server = running_server(files.state_dir)

    os.kill(server.pid, signal.SIGKILL)
    eventually(lambda: (info := files.read_info()) is not None and info.pid != server.pid)
    program("fire", "new-issue")

    read_until(process, "new-issue@v1 succeeded")
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 0


def test_with_the_supervisor_killed_the_next_command_and_up_both_work(
    program, files, read_until, eventually
):
    process = program.start("up")
    read_until(process, "Ready")
    os.kill(files.supervisor_pid(), signal.SIGKILL)
    eventually(lambda: not is_held(files.supervisor_lock))

    assert program("fire", "flaky", "--wait").code == 0

    read_until(process, "flaky@v1 succeeded")
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 0

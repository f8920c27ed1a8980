"""What becomes of a process whose store a newer version of harn-temporal has taken over."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

SAYS = "error: a newer version of harn-temporal has upgraded the EventLog"


def take_over(program, by):
    """As a newer version does it, and `by` less than nothing as if that had been this one."""
    path = program.folder / ".harn/orchestrator/events.sqlite"
    with closing(sqlite3.connect(path, timeout=30)) as connection, connection:
        connection.execute(
            "UPDATE harn_temporal_generations SET version = version + ? WHERE live = 1", (by,)
        )


def errors(program):
    return (program.folder / "stderr").read_text()


@pytest.mark.parametrize("command", [("worker",), ("worker", "--no-pump"), ("up",)])
def test_an_idle_one_ends_by_itself(program, temporal_address, read_until, command):
    process = program.start(*command, "--address", temporal_address)
    read_until(process, "Ready")

    take_over(program, 1)

    assert process.wait(40) == 3
    assert errors(program).splitlines()[-1].startswith(SAYS)
    assert "upgrade harn-temporal here as well" in errors(program)
    assert "Traceback" not in errors(program)
    other = program("trigger", "ls")
    assert (other.code, other.out) == (3, "")
    assert other.err.startswith(SAYS)


def test_an_attempt_under_way_is_none_and_the_next_worker_runs_it(
    program, temporal_address, read_until, eventually
):
    process = program.start("worker", "--address", temporal_address)
    read_until(process, "Ready")
    program("fire", "slow")
    eventually((program.folder / "begun").exists)

    take_over(program, 1)
    (program.folder / "go").touch()

    assert process.wait(40) == 3
    assert errors(program).splitlines()[-1].startswith(SAYS)

    take_over(program, -1)
    after = program.start("worker", "--address", temporal_address)
    read_until(after, "Ready")
    assert read_until(after, "slow@v1") == ["slow -> slow@v1 succeeded, 1 attempt"]
    [outcome] = program("trigger", "show", "slow", "--json").json["versions"]
    assert (outcome["figures"]["succeeded"], outcome["figures"]["dispatches"]) == (1, 1)


def test_one_that_waits_for_a_dispatch_ends(program, temporal_address, eventually):
    process = program.start("fire", "slow", "--wait", "--address", temporal_address)
    eventually((program.folder / "begun").exists)

    take_over(program, 1)
    (program.folder / "go").touch()

    assert process.wait(40) == 3
    assert errors(program).splitlines()[-1].startswith(SAYS)

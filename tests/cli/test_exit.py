"""Every way out of the program, and that none of them is an abort of the interpreter."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from harn_temporal import entry
from harn_temporal.cli import app
from harn_temporal.errors import StoreUnavailableError, TemporalUnavailableError, UsageError
from harn_temporal.temporal.embedded import embedded_server


@pytest.fixture
def failing(monkeypatch):
    """Makes `harn-temporal fire` raise an exception, and runs it."""

    def run(error, *arguments):
        def fire():
            raise error

        monkeypatch.setattr(app.importlib, "import_module", lambda _: _Module(fire))
        return entry.run(["fire", *arguments])

    return run


class _Module:
    def __init__(self, fire):
        self.fire = fire


def test_errors_of_ours_are_a_message_and_their_code(failing, capsys):
    assert failing(UsageError("no such thing")) == 2
    assert failing(TemporalUnavailableError("nobody there")) == 3
    assert failing(StoreUnavailableError("no disk")) == 3
    assert capsys.readouterr() == (
        "",
        "error: no such thing\nerror: nobody there\nerror: no disk\n",
    )


def test_an_error_inside_a_task_group_is_that_error(failing, capsys):
    assert failing(ExceptionGroup("tasks", [UsageError("no such thing")])) == 2
    assert capsys.readouterr().err == "error: no such thing\n"


def test_an_unexpected_error_is_a_line_and_a_hint(failing, capsys):
    assert failing(KeyError("x")) == 1
    assert capsys.readouterr().err.splitlines() == [
        "error: unexpected KeyError: 'x'",
        "This is a fault of harn-temporal. `--debug` shows where it happened.",
    ]


def test_debug_shows_the_traceback(failing, capsys):
    assert failing(UsageError("no such thing"), "--debug") == 2
    shown = capsys.readouterr().err
    assert shown.startswith("Traceback")
    assert shown.endswith("error: no such thing\n")


def test_an_interrupt_is_130(failing, capsys):
    assert failing(KeyboardInterrupt()) == 130
    assert "Traceback" not in capsys.readouterr().err


def test_a_reader_that_goes_away_is_no_error_message(failing, capsys):
    assert failing(BrokenPipeError()) == 141
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "arguments", [["--help"], ["--version"], ["fire", "new-issue", "--json"], ["trigger", "ls"]]
)
def test_output_for_a_reader_that_is_gone(program, arguments):
    assert program("fire", "new-issue").code == 0
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [*program.command, *arguments],
            cwd=program.folder,
            env=program.environment,
            stdout=writer,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=30,
        )
    finally:
        os.close(writer)

    assert done.returncode == 141
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_streams_that_the_caller_closed(program, closed):
    done = subprocess.run(
        ["sh", "-c", f'exec "$@" {closed}', "sh", *program.command, "fire", "new-issue", "--json"],
        cwd=program.folder,
        env=program.environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )

    assert done.returncode == 0, done.stderr
    assert "error" not in done.stderr
    assert "Traceback" not in done.stderr
    shown = program("log", "read", "trigger.inbox.envelopes", "--json")
    assert len(shown.out.splitlines()) == 1


def test_stdin_that_the_caller_closed_is_empty(program):
    done = subprocess.run(
        [
            "sh",
            "-c",
            'exec "$@" <&-',
            "sh",
            *program.command,
            "fire",
            "new-issue",
            "--payload",
            "-",
        ],
        cwd=program.folder,
        env=program.environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )

    assert done.returncode == 2
    assert done.stderr == "error: stdin is not JSON: Expecting value at line 1, column 1\n"


def test_output_onto_a_full_disk_is_an_error(program):
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*program.command, "--version"],
            cwd=program.folder,
            env=program.environment,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )

    assert done.returncode == 1
    assert done.stderr == "error: No space left on device\n"


@pytest.mark.timeout(300)
async def test_sixty_commands_in_a_row_end_as_they_should(program):
    round_of_ten = [
        (["fire", "flaky", "--wait", "--json"], 0),
        (["fire", "broken", "--wait", "--json"], 1),
        (["fire", "new-issue", "--wait"], 0),
        (["fire", "refused", "--wait"], 1),
        (["fire", "new-issue", "--json"], 0),
        (["fire", "nobody"], 2),
        (["log", "topics", "--json"], 0),
        (["fire", "flaky", "--wait"], 0),
        (["trigger", "ls", "--json"], 0),
        (["dlq", "replay", "nobody"], 2),
    ]

    async def one_after_the_other(numbers):
        for number in numbers:
            arguments, code = round_of_ten[number % 10]
            ran = await asyncio.to_thread(program, *arguments)

            assert ran.code == code, f"command {number}: {ran.err}"
            assert "Fatal Python error" not in ran.err
            if "--json" in arguments:
                json.loads(ran.out)

    async with embedded_server(program.folder / ".harn/orchestrator") as server:
        # Two at a time: what they wait for costs less, and two workers share what there is to do.
        numbers = iter(range(60))
        await asyncio.gather(one_after_the_other(numbers), one_after_the_other(numbers))
        async with embedded_server(program.folder / ".harn/orchestrator") as still:
            assert still == server


@pytest.mark.parametrize(
    "module", ["harn_temporal.cli.app", "typer", "harn_temporal.telemetry", "io"]
)
def test_an_interrupt_while_the_program_starts_is_quiet(program, module):
    code = f"""
import builtins, sys
imported = builtins.__import__

def interrupted(name, *rest):
    if name == {module!r}:
        raise KeyboardInterrupt
    return imported(name, *rest)

sys.argv[1:] = ["trigger", "--help"]
builtins.__import__ = interrupted
from harn_temporal.entry import main
main()
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=30
    )

    assert (done.returncode, done.stderr) == (130, "")


def test_the_interpreter_never_finalizes(program):
    """A thread of the Temporal SDK that asks for the GIL meanwhile would abort the process."""
    code = (
        "import atexit, sys; atexit.register(print, 'finalized'); sys.argv[1:] = ['--version'];"
        "from harn_temporal.entry import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=30
    )

    assert done.stdout.startswith("harn-temporal ")
    assert "finalized" not in done.stdout

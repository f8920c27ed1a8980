"""The real program, run in a project of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from harn_temporal.temporal.embedded_files import EmbeddedFiles
from harn_temporal.temporal.locks import is_held

MANIFEST = """
[package]
name = "shop"

[[triggers]]
id = "new-issue"
kind = "webhook"
provider = "github"
match = { events = ["issues.opened"] }
handler = "greet"

[[triggers]]
id = "flaky"
kind = "webhook"
provider = "github"
match = { events = ["issues.closed", "issues.deleted"] }
handler = "flaky"
retry = { max = 3, backoff = "immediate" }

[[triggers]]
id = "broken"
kind = "webhook"
provider = "github"
match = { events = [] }
filter = "event.kind != 'ping'"
handler = "broken"
retry = { max = 1, backoff = "immediate" }

[[triggers]]
id = "parked"
kind = "cron"
provider = "cron"
match = { events = ["tick"] }
handler = "parked"

[[triggers]]
id = "refused"
kind = "webhook"
provider = "shop"
match = { events = ["order"] }
handler = "refused"

[[triggers]]
id = "slow"
kind = "webhook"
provider = "shop"
match = { events = ["slow"] }
handler = "slow"

[[triggers]]
id = "stuck"
kind = "webhook"
provider = "shop"
match = { events = ["stuck"] }
handler = "stuck"
"""

HANDLERS = """
import asyncio
import time
from pathlib import Path

from harn_temporal import Denied, Waiting

HERE = Path(__file__).parent


def greet(event):
    print("a handler prints")
    return {"kind": event.kind, "title": event.raw.get("title"), "headers": event.headers}


async def flaky(event, context):
    if context.attempt < 3:
        raise ValueError(f"attempt {context.attempt} fails")
    return "done at last"


def broken(event):
    raise RuntimeError("never works")


def parked(event):
    raise Waiting("for a human")


def refused(event):
    raise Denied("not yours")


async def slow(event):
    (HERE / "begun").touch()
    while not (HERE / "go").exists():
        await asyncio.sleep(0.02)
    return "finished"


def stuck(event):
    (HERE / "begun").touch()
    time.sleep(600)
"""


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """What is on stdout, which must be one JSON document and nothing else."""
        return json.loads(self.out)


@dataclass
class Program:
    """`harn-temporal` in the folder of a manifest."""

    folder: Path
    environment: dict[str, str]
    command: tuple[str, ...] = (str(Path(sys.executable).with_name("harn-temporal")),)
    _started: list[subprocess.Popen[str]] = field(default_factory=list)

    def __call__(
        self, *arguments: str, stdin: str | bytes = "", cwd: Path | None = None, **environment: str
    ) -> Ran:
        done = subprocess.run(
            [*self.command, *arguments],
            cwd=cwd or self.folder,
            env=self.environment | environment,
            input=stdin.encode() if isinstance(stdin, str) else stdin,
            capture_output=True,
            check=False,
            timeout=90,
        )
        return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        with (self.folder / "stderr").open("w") as stderr:
            process = subprocess.Popen(
                [*self.command, *arguments],
                cwd=self.folder,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
            )
        self._started.append(process)
        return process

    def stop(self) -> None:
        for process in self._started:
            process.send_signal(signal.SIGKILL)
            process.wait()
            process.stdout.close()


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "harn.toml").write_text(MANIFEST)
    (folder / "lib.py").write_text(HANDLERS)
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("HARN_", "TEMPORAL_"))
    }
    environment["TEMPORAL_CONFIG_FILE"] = str(tmp_path / "none.toml")
    program = Program(folder, environment)
    yield program
    program.stop()
    files = EmbeddedFiles(folder / ".harn/orchestrator")
    if files.directory.exists():
        _eventually(lambda: not is_held(files.server_lock))


def _eventually(fact: Callable[[], bool], seconds: float = 40) -> None:
    deadline = time.monotonic() + seconds
    while not fact():
        assert time.monotonic() < deadline, "the fact did not come about"
        time.sleep(0.02)


@pytest.fixture
def eventually() -> Callable[..., None]:
    """Waits for a fact, with a bound."""
    return _eventually


@pytest.fixture
def read_until() -> Callable[[subprocess.Popen[str], str], list[str]]:
    """Reads lines of a running program up to the one that holds a text."""

    def read(process: subprocess.Popen[str], text: str) -> list[str]:
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            lines.append(line.rstrip("\n"))
            if text in line:
                return lines
        raise AssertionError(f"{text!r} did not come; there was {lines}")

    return read

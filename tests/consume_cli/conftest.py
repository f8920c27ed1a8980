"""Two manifests on one state dir, as the page on worker dispatch has them, and the real program."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).with_name("worker_dispatch.md").read_text()
BLOCKS = re.findall(r"^```\w+\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
PRODUCER, CONSUMER, *COMMANDS = BLOCKS

LIB = """
import asyncio
from pathlib import Path

HERE = Path(__file__).parent


async def on_task(event):
    with (HERE / "handled").open("a") as file:
        file.write(event.id + "\\n")
    if event.raw.get("fails"):
        raise ValueError("cannot review this")
    while event.raw.get("slow") and not (HERE / "go").exists():
        await asyncio.sleep(0.02)
    return {"reviewed": event.raw["kind"]}
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
class Place:
    """A folder with `producer/`, `consumer/` and `state/`."""

    folder: Path
    environment: dict[str, str]
    program: str = str(Path(sys.executable).with_name("harn-temporal"))
    started: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def __call__(self, *arguments: str, stdin: bytes = b"", **environment: str) -> Ran:
        done = subprocess.run(
            [self.program, *arguments],
            cwd=self.folder,
            env=self.environment | environment,
            input=stdin,
            capture_output=True,
            check=False,
            timeout=100,
        )
        return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())

    def queue(self, *arguments: str, config: str = "consumer", **environment: str) -> Ran:
        """`harn-temporal queue …` with its options where the page has them."""
        given = ["queue", "--config", f"{config}/harn.toml", "--state-dir", "./state", *arguments]
        return self(*given, **environment)

    def shell(self, block: str, **environment: str) -> Ran:
        """The commands of a block of the page, with our program in the place of Harn's."""
        script = f"set -e\n{block.replace('harn orchestrator', 'harn-temporal')}"
        path = f"{Path(self.program).parent}:{os.environ['PATH']}"
        done = subprocess.run(
            ["sh", "-c", script],
            cwd=self.folder,
            env=self.environment | environment | {"PATH": path},
            capture_output=True,
            check=False,
            timeout=100,
        )
        return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        number = len(self.started)
        with (
            (self.folder / f"out-{number}").open("wb") as out,
            (self.folder / f"err-{number}").open("wb") as err,
        ):
            process = subprocess.Popen(
                [self.program, *arguments],
                cwd=self.folder,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
            )
        self.started.append(process)
        return process

    def produce(self, **payload: Any) -> Ran:
        """Ingest one task for the producer's trigger, and wait until it is a job."""
        task = {"kind": "a2a.task.received", "task_id": "t", **payload}
        (self.folder / "task.json").write_text(json.dumps(task))
        return self(
            "fire", "incoming-review-task", "--payload", "task.json", "--wait", "--json",
            "--config", "producer/harn.toml", "--state-dir", "./state",
        )  # fmt: skip

    @property
    def handled(self) -> list[str]:
        path = self.folder / "consumer/handled"
        return path.read_text().split() if path.exists() else []

    @staticmethod
    def eventually(fact: Callable[[], Any], seconds: float = 60) -> Any:
        deadline = time.monotonic() + seconds
        while not (found := fact()):
            assert time.monotonic() < deadline, "the fact did not come about"
            time.sleep(0.05)
        return found


@pytest.fixture
def page_commands() -> list[str]:
    """The blocks of the page after its two manifests."""
    return COMMANDS


@pytest.fixture
def place(tmp_path: Path, temporal_address: str) -> Iterator[Place]:
    for name, text in (("producer", PRODUCER), ("consumer", CONSUMER)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "harn.toml").write_text(text)
    (tmp_path / "consumer/lib.py").write_text(LIB)
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("HARN_", "TEMPORAL_"))
    }
    environment["TEMPORAL_ADDRESS"] = temporal_address
    environment["TEMPORAL_CONFIG_FILE"] = str(tmp_path / "none.toml")
    place = Place(tmp_path, environment)
    yield place
    for process in place.started:
        process.send_signal(signal.SIGKILL)
        process.wait()

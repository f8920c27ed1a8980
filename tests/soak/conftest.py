"""`harn-temporal up` in a process of its own, which may be killed, and the program beside it."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from harn_temporal.eventlog import StoreSettings, open_event_log
from harn_temporal.events import new_event
from harn_temporal.headers import OUTCOME
from harn_temporal.ingestion import ingest
from harn_temporal.manifest import load_manifest
from harn_temporal.registry import register

PROGRAM = Path(sys.executable).parent / "harn-temporal"
STATE = ".harn/orchestrator"


class Up:
    """A package in `folder`, started anew whenever its `up` was ended."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.folder = folder
        self._environment = environment
        self._process: subprocess.Popen[bytes] | None = None

    def write(self, manifest: str, handlers: str) -> None:
        (self.folder / "harn.toml").write_text(manifest)
        (self.folder / "lib.py").write_text(handlers)

    def ingest(self, events: Sequence[tuple[str, Any]]) -> list[str]:
        """Take in an event of each kind and payload; the ids of those that were accepted."""

        async def fill() -> list[str]:
            manifest = load_manifest(self.folder / "harn.toml")
            log = await open_event_log(
                StoreSettings("sqlite", self.folder / STATE / "events.sqlite")
            )
            bindings = await register(log, manifest.package, manifest.bindings)
            taken = [
                each
                for kind, payload in events
                for each in await ingest(
                    log,
                    bindings,
                    new_event(provider="webhook", kind=kind, payload=payload),
                    package=manifest.package,
                )
            ]
            await log.close()
            return [each.event_id for each in taken if each.status == "accepted"]

        return asyncio.run(fill())

    def start(self) -> None:
        with (self.folder / "up.log").open("ab") as log:
            self._process = subprocess.Popen(
                [PROGRAM, "up"], cwd=self.folder, env=self._environment, stdout=log, stderr=log
            )

    def end(self, number: int) -> int:
        assert self._process is not None
        self._process.send_signal(number)
        return self._process.wait(90)

    def run(self, *arguments: str) -> str:
        """What a command prints; it must succeed."""
        done = subprocess.run(
            [PROGRAM, *arguments], cwd=self.folder, env=self._environment, capture_output=True,
            text=True, check=False, timeout=120,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def records(self, topic: str) -> list[dict[str, Any]]:
        if topic not in self.run("log", "topics", topic):
            return []
        lines = self.run("log", "read", topic, "--limit", "100000", "--json").splitlines()
        return [json.loads(line) for line in lines]

    def outcomes(self) -> list[dict[str, Any]]:
        """The records that ended dispatches."""
        return [each for each in self.records("trigger.outbox") if OUTCOME in each["headers"]]

    def until(self, fact: Callable[[], object], bound_s: float = 600) -> None:
        deadline = time.monotonic() + bound_s
        while not fact():
            assert time.monotonic() < deadline, (self.folder / "up.log").read_text()[-5000:]
            time.sleep(0.2)


@pytest.fixture
def up(tmp_path: Path) -> Up:
    ours = ("HARN_", "TEMPORAL_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return Up(tmp_path, environment)

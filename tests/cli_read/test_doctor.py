import errno
import json
import os
import shutil
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harn_temporal.clock import system_clock
from harn_temporal.eventlog.log import Append, EventLog
from harn_temporal.headers import OUTCOME, PACKAGE, WORKFLOW_ID
from harn_temporal.manifest import load_manifest
from harn_temporal.naming import dispatch_workflow_id, pump_consumer
from harn_temporal.registry import register
from harn_temporal.temporal import embedded

MANIFEST = """
[package]
name = "triage"

[[triggers]]
id = "new"
kind = "webhook"
provider = "github"
match = { events = ["issues.opened"] }
handler = "on_new"
"""

HANDLERS = """
print("imported")

def on_new(event):
    return None
"""


@pytest.fixture
def work(program: Any) -> Path:
    """The working directory of the program, with a manifest and its handlers."""
    folder: Path = program.state_dir.parent
    (folder / "harn.toml").write_text(MANIFEST)
    (folder / "lib.py").write_text(HANDLERS)
    return folder


def states(ran: Any) -> dict[str, str]:
    return {check["name"]: check["state"] for check in json.loads(ran.out)["checks"]}


def check(ran: Any, name: str) -> Any:
    (found,) = (each for each in json.loads(ran.out)["checks"] if each["name"] == name)
    return found


def test_a_set_up_that_was_never_used_is_fine(program: Any, work: Path) -> None:
    ran = program("doctor", "--json")
    assert (ran.code, json.loads(ran.out)["ok"]) == (0, True)
    assert states(ran) == dict.fromkeys(
        ["python", "manifest", "handlers", "state_dir", "event_log", "temporal_binary", "temporal"],
        "ok",
    )
    assert check(ran, "temporal") == {
        "name": "temporal",
        "state": "ok",
        "found": "the embedded server does not run; commands that need it start it",
        "advice": None,
    }
    assert check(ran, "manifest")["found"] == "harn.toml: package triage, 1 trigger"
    assert ran.err == "imported\n"
    assert not program.state_dir.exists()


def test_every_mistake_of_a_manifest_is_named(program: Any, work: Path) -> None:
    (work / "harn.toml").write_text(MANIFEST.replace("webhook", "webhoook") + 'retri = "x"\n')
    ran = program("doctor", "--json")
    assert (ran.code, json.loads(ran.out)["ok"]) == (1, False)
    manifest = check(ran, "manifest")
    assert manifest["state"] == "error"
    assert "2 problems" in manifest["found"]
    assert "handlers" not in states(ran)
    assert "workers" not in states(ran)


def test_a_handler_that_is_missing(program: Any, work: Path) -> None:
    (work / "lib.py").write_text("def other(event): ...\n")
    ran = program("doctor", "--json")
    assert ran.code == 1
    assert check(ran, "handlers")["state"] == "error"
    assert "on_new" in check(ran, "handlers")["found"]
    assert states(ran)["manifest"] == "ok"


def test_no_manifest(program: Any) -> None:
    ran = program("doctor", "--json", "--config", "other.toml")
    assert ran.code == 1
    assert check(ran, "manifest")["found"] == "there is none at other.toml"


def test_a_backend_that_does_not_exist(program: Any, work: Path) -> None:
    ran = program("doctor", "--json", HARN_EVENT_LOG_BACKEND="paper")
    assert ran.code == 1
    assert check(ran, "event_log")["found"].startswith("HARN_EVENT_LOG_BACKEND is 'paper'")


def test_the_memory_backend_is_warned_of(program: Any, work: Path) -> None:
    ran = program("doctor", "--json", HARN_EVENT_LOG_BACKEND="memory")
    assert (ran.code, check(ran, "event_log")["state"]) == (0, "warning")


def test_a_state_directory_that_is_a_file(program: Any, work: Path) -> None:
    program.state_dir.write_text("")
    ran = program("doctor", "--json")
    assert ran.code == 1
    assert check(ran, "state_dir")["found"] == f"{program.state_dir} is no directory"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_state_directory_that_cannot_be_written(program: Any, work: Path) -> None:
    program.state_dir.mkdir(mode=0o500)
    assert check(program("doctor", "--json"), "state_dir")["state"] == "error"


def test_a_server_that_may_not_be_looked_at(
    program: Any, work: Path, filled: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path) -> bool:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(embedded, "is_held", refuse)

    ran = program("doctor", "--json")

    assert ran.code == 0
    assert check(ran, "temporal") == {
        "name": "temporal",
        "state": "warning",
        "found": "the embedded server cannot be looked at: Permission denied: "
        f"{program.state_dir}/temporal/supervisor.lock",
        "advice": "ask as the user whom the state directory belongs to",
    }


def test_a_disk_that_is_almost_full(
    program: Any, work: Path, filled: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=5 * 1024))

    ran = program("doctor", "--json")

    assert check(ran, "state_dir") == {
        "name": "state_dir",
        "state": "warning",
        "found": f"{program.state_dir} is on a disk with 5 KiB left",
        "advice": "make room, or name another place with --state-dir or "
        "HARN_ORCHESTRATOR_STATE_DIR",
    }


def test_a_store_that_is_none(program: Any, work: Path) -> None:
    path = program.settings().path
    path.parent.mkdir(parents=True)
    path.write_text("this is not what a store looks like")
    ran = program("doctor", "--json")
    assert ran.code == 1
    assert check(ran, "event_log")["state"] == "error"
    assert str(path) in check(ran, "event_log")["found"]


def test_a_store_in_use(program: Any, work: Path, filled: Any) -> None:
    ran = program("doctor", "--json")
    assert ran.code == 0
    found = check(ran, "event_log")["found"]
    assert found.startswith(f"{program.settings().kind} at {program.settings().path}, id ")
    assert check(ran, "projections") == {
        "name": "projections", "state": "ok", "found": "current", "advice": None,
    }  # fmt: skip


def test_records_that_no_projection_understands(program: Any, work: Path) -> None:
    program.fill(lambda log: log.append([Append("trigger.inbox.claims", "dedupe_claim", {})]))
    ran = program("doctor", "--json")
    assert (ran.code, check(ran, "projections")["state"]) == (0, "warning")
    assert "trigger.inbox.claims 1: " in check(ran, "projections")["found"]


def envelope(topic: str, package: str, event_id: str) -> Append:
    headers = {PACKAGE: package, "trigger_id": "new", "event_id": event_id}
    return Append(topic, "event_ingested", {"event": {}}, headers)


def end(package: str, event_id: str) -> Append:
    """As `fire --wait` leaves it, which dispatches what no pump has seen."""
    workflow_id = dispatch_workflow_id(package, "new", event_id)
    headers = {WORKFLOW_ID: workflow_id, OUTCOME: "succeeded", "attempt": "1"}
    return Append("trigger.outbox", "dispatch_succeeded", {}, headers)


def test_dispatches_that_temporal_has_lost(program: Any, work: Path) -> None:
    workflow_id = dispatch_workflow_id("triage", "new", "a")
    place = {"topic": "trigger.inbox.envelopes", "event_log_id": 1}
    headers = {PACKAGE: "triage", WORKFLOW_ID: workflow_id}

    async def fill(log: EventLog) -> None:
        manifest = load_manifest(work / "harn.toml", load_handlers=False)
        await register(log, manifest.package, manifest.bindings)
        await log.append([envelope("trigger.inbox.envelopes", "triage", "a")])
        for kind in ("pump_admitted", "dispatch_lost"):
            await log.append([Append("orchestrator.lifecycle", kind, place, headers)])

    program.fill(fill)
    ran = program("doctor", "--json")
    found = check(ran, "dispatcher")
    assert (ran.code, found["state"]) == (0, "warning")
    assert found["found"].endswith("0 waiting in the inbox; 1 that Temporal has lost")
    # A dispatch may be lost that is younger than what `recover` lists without being told.
    assert "`harn-temporal recover --envelope-age 0s --dry-run` lists them" in found["advice"]


@pytest.mark.parametrize(
    ("silent_ms", "expected"),
    [
        (None, "none of triage has been seen; 2 envelopes waiting"),
        (7_200_000, "none of triage has been seen for 2 h; 1 envelope waiting"),
        (1_000, "one of triage pumps the inbox"),
    ],
)
def test_workers(program: Any, work: Path, silent_ms: int | None, expected: str) -> None:
    topics = ("trigger.inbox.envelopes", "tenant.acme.trigger.inbox.envelopes")

    async def fill(log: EventLog) -> None:
        await log.append([envelope(topics[0], "triage", "a"), envelope(topics[0], "other", "a")])
        await log.append([envelope(topics[1], "triage", "b"), envelope(topics[0], "triage", "c")])
        await log.append([end("triage", "c")])
        if silent_ms is not None:
            await log.append([end("triage", "a")])
            consumer = pump_consumer("triage")
            await log.transact(lambda transaction: transaction.ack(topics[0], consumer, 2))

    at = system_clock() - (silent_ms or 0)
    replace(program, clock=lambda: at).fill(fill)
    found = check(program("doctor", "--json"), "workers")
    assert found["found"] == expected
    assert found["state"] == ("ok" if silent_ms == 1_000 else "warning")


def test_a_service_that_does_not_answer(program: Any, work: Path, closed_port: int) -> None:
    if program.environment["HARN_EVENT_LOG_BACKEND"] != "sqlite":
        pytest.skip("it takes seconds, and has nothing to do with the store")
    ran = program("doctor", "--json", "--address", f"127.0.0.1:{closed_port}")
    assert ran.code == 1
    assert check(ran, "temporal")["state"] == "error"
    assert f"127.0.0.1:{closed_port}" in check(ran, "temporal")["found"]
    assert "temporal_binary" not in states(ran)


@pytest.fixture
def closed_port() -> Iterator[int]:
    """A port of this machine that is taken, where nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


def test_people_see_what_to_do(program: Any, work: Path) -> None:
    (work / "lib.py").unlink()
    ran = program("doctor")
    assert ran.code == 1
    lines = [line.split() for line in ran.out.splitlines()]
    assert lines[0][:2] == ["ok", "python"]
    assert ["error", "handlers"] in [line[:2] for line in lines]
    assert any(line[0] == "->" for line in lines)

"""Records the histories that test_replay.py replays.

    python tests/replay/record.py [NAME …]

runs each scenario (or those named) on a server of its own and writes histories/NAME.json. Record
a new scenario when a workflow learns something new. Do not record an old one anew to make its
test pass: it stands for the dispatches that run in the field, and a workflow that no longer
replays it needs `workflow.patched`.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from temporalio.api.enums.v1 import PendingActivityState
from temporalio.client import WorkflowHandle
from temporalio.testing import WorkflowEnvironment

from harn_temporal.a2a.client import A2aClient, HopAnswer, task_handle
from harn_temporal.consumers import ConsumerOptions, start_consumer
from harn_temporal.contracts import DispatchRequest, DispatchState, PumpRequest, RemoteTask
from harn_temporal.eventlog import StoreSettings, open_event_log
from harn_temporal.eventlog.log import EventLog
from harn_temporal.events import new_event
from harn_temporal.ingestion import ingest
from harn_temporal.manifest import Manifest, load_manifest
from harn_temporal.naming import consumer_queue, control_queue, pump_workflow_id, task_queue
from harn_temporal.queue.models import NewJob
from harn_temporal.queue.operations import enqueue_many
from harn_temporal.registry import register
from harn_temporal.temporal.converter import data_converter
from harn_temporal.temporal.server_process import SETTINGS, find_binary
from harn_temporal.temporal.starter import start_dispatch
from harn_temporal.worker import WorkerOptions, running_worker

PROCESS = re.compile(r"\d+@[\w.-]+")
"""How the SDK names a process: its id and its host."""

HISTORIES = Path(__file__).with_name("histories")

LIB = """
import asyncio

def succeeds(event):
    return {"n": event.raw["n"]}

def fails_twice(event, context):
    if context.attempt < 3:
        raise ValueError(f"attempt {context.attempt}")
    return context.attempt

def fails(event):
    raise ValueError("always")

async def hangs(event):
    await asyncio.Event().wait()

def refuses(event):
    return False
"""

HANDLERS = ("succeeds", "fails_twice", "fails", "hangs")

MANIFEST = (
    '[package]\nname = "replay"\n\n[exports]\nhandlers = "lib.py"\n'
    + "".join(
        f"""
[[triggers]]
id = "{handler}"
kind = "webhook"
provider = "github"
match = {{ events = ["push"] }}
handler = "handlers::{handler}"
retry = {{ max = 3, backoff = "linear", delay_ms = 50 }}
"""
        for handler in HANDLERS
    )
    + """
[[triggers]]
id = "waits"
kind = "webhook"
provider = "github"
match = { events = ["push"] }
handler = "handlers::fails"

[[triggers]]
id = "retries_late"
kind = "webhook"
provider = "github"
match = { events = ["push"] }
handler = "handlers::fails"
retry = { max = 3, backoff = "linear", delay_ms = 60000 }

[[triggers]]
id = "followed"
kind = "webhook"
provider = "github"
match = { events = ["push"] }
handler = "a2a://reviewer.test/triage"
a2a = { follow = true, timeout = "1h", poll = "200ms" }

[[triggers]]
id = "followed_long"
kind = "webhook"
provider = "github"
match = { events = ["push"] }
handler = "a2a://reviewer.test/triage"
a2a = { follow = true, timeout = "1h", poll = "1m" }

[[triggers]]
id = "gated"
kind = "webhook"
provider = "github"
match = { events = ["push"] }
handler = "handlers::fails_twice"
retry = { max = 3, backoff = "linear", delay_ms = 10500 }
debounce = { key = "event.kind", period = "1s" }
singleton = {}
concurrency = { key = "event.kind", max = 2 }

[[triggers]]
id = "held_back"
kind = "webhook"
provider = "github"
match = { events = ["push"] }
handler = "handlers::succeeds"
debounce = { key = "event.kind", period = "1m" }

[[triggers]]
id = "undecided"
kind = "webhook"
provider = "github"
match = { events = ["push"] }
when = "handlers::hangs"
handler = "handlers::succeeds"

[[triggers]]
id = "skipped"
kind = "webhook"
provider = "github"
match = { events = ["push"] }
when = "handlers::refuses"
handler = "handlers::succeeds"
"""
)


TASK = RemoteTask(
    task_id="task-1",
    state="working",
    target_agent="triage",
    rpc_url="https://reviewer.test/rpc",
    card_url="https://reviewer.test/.well-known/agent-card.json",
    agent_id="Reviewer",
    protocol_version="1.0",
)


class Agents(A2aClient):
    """An agent whose task has ended when it is asked about for the second time."""

    asked = 0

    async def send(self, *_: Any, **__: Any) -> HopAnswer:
        return HopAnswer(task_handle(TASK), TASK, pending=True)

    async def task(self, *_: Any, **__: Any) -> HopAnswer:
        self.asked += 1
        if self.asked < 2:
            return HopAnswer(task_handle(TASK), TASK, pending=True)
        return HopAnswer({"score": 7}, TASK.model_copy(update={"state": "completed"}))

    async def cancel(self, *_: Any, **__: Any) -> None:
        pass


@dataclass
class Scene:
    environment: WorkflowEnvironment
    log: EventLog
    manifest: Manifest

    async def start(self, trigger_id: str) -> WorkflowHandle[Any, Any]:
        bindings = await register(self.log, "replay", self.manifest.bindings)
        event = new_event(provider="github", kind="push", payload={"n": 1})
        [taken] = await ingest(self.log, bindings, event, package="replay", only=trigger_id)
        assert taken.address is not None
        request = DispatchRequest(
            store_id=self.log.store_id,
            binding=next(each for each in bindings if each.trigger_id == trigger_id),
            event_id=event.id,
            trace_id=event.trace_id,
            address=taken.address,
            event=event,
        )
        await start_dispatch(self.environment.client, self.log, request)
        return self.environment.client.get_workflow_handle(taken.workflow_id)

    async def phase(self, handle: WorkflowHandle[Any, Any], phase: str) -> None:
        """Wait until the dispatch is in this phase, and an attempt that runs has begun."""
        async with asyncio.timeout(20):
            while True:
                state: DispatchState = await handle.query("state", result_type=DispatchState)
                begun = await self.log.read("trigger.outbox")
                if state.phase == phase and begun:
                    return
                await asyncio.sleep(0.05)


async def ended(scene: Scene, trigger_id: str) -> WorkflowHandle[Any, Any]:
    handle = await scene.start(trigger_id)
    await handle.result()
    return handle


async def cancelled(scene: Scene, trigger_id: str, phase: str) -> WorkflowHandle[Any, Any]:
    handle = await scene.start(trigger_id)
    await scene.phase(handle, phase)
    await handle.cancel()
    await handle.result()
    return handle


async def cancelled_while_it_is_decided(scene: Scene) -> WorkflowHandle[Any, Any]:
    """Cancelled while its predicate runs."""
    handle = await scene.start("undecided")
    async with asyncio.timeout(20):
        while not await _runs_an_activity(handle):  # noqa: ASYNC110 - a worker takes it up
            await asyncio.sleep(0.02)
    await handle.cancel()
    await handle.result()
    return handle


async def _runs_an_activity(handle: WorkflowHandle[Any, Any]) -> bool:
    found = (await handle.describe()).raw_description.pending_activities
    return any(each.state == PendingActivityState.PENDING_ACTIVITY_STATE_STARTED for each in found)


async def held_back(scene: Scene) -> WorkflowHandle[Any, Any]:
    """Waits at a gate, until a later event takes its place there."""
    first = await scene.start("held_back")
    second = await scene.start("held_back")
    await first.result()
    await second.cancel()
    await second.result()
    return first


async def pump_continued(scene: Scene) -> WorkflowHandle[Any, Any]:
    """A run of the pump whose lifetime is over. The worker's own pump makes way for it."""
    client, store_id = scene.environment.client, scene.log.store_id
    workflow_id = pump_workflow_id(store_id, "replay")
    await client.get_workflow_handle(workflow_id).terminate()
    started = await client.start_workflow(
        "PumpWorkflow",
        PumpRequest(
            store_id=store_id,
            package="replay",
            control_queue=control_queue(store_id, "replay"),
            lifetime_ms=50,
        ),
        id=workflow_id,
        task_queue=task_queue(store_id, "replay"),
    )
    first_run = client.get_workflow_handle(workflow_id, run_id=started.first_execution_run_id)
    async with asyncio.timeout(20):
        while (await first_run.describe()).close_time is None:  # noqa: ASYNC110 - it ends there
            await asyncio.sleep(0.05)
    return first_run


async def consumed(
    scene: Scene, triggers: dict[str, int], *, first_run: bool = False, **options: Any
) -> WorkflowHandle[Any, Any]:
    """A drain of so many jobs for each trigger; its first run where it continued as new."""
    await register(scene.log, "replay", scene.manifest.bindings)
    jobs = [
        NewJob(
            queue="triage",
            trigger_id=trigger_id,
            binding_key=f"{trigger_id}@v1",
            event=new_event(provider="github", kind="push", payload={"n": 1}).to_json(),
        )
        for trigger_id, count in triggers.items()
        for _ in range(count)
    ]
    await enqueue_many(scene.log, jobs)
    client = scene.environment.client
    handle = await start_consumer(
        client,
        scene.log,
        "replay",
        ConsumerOptions("triage", "recorder", "drain", 3, **options),
        search_attributes=True,
        heartbeat_timeout_ms=30_000,
    )
    await handle.result()
    run_id = handle.first_execution_run_id if first_run else None
    return client.get_workflow_handle(handle.id, run_id=run_id)


SCENARIOS: dict[str, Callable[[Scene], Awaitable[WorkflowHandle[Any, Any]]]] = {
    "dispatch_success": lambda scene: ended(scene, "succeeds"),
    "dispatch_retries": lambda scene: ended(scene, "fails_twice"),
    "dispatch_dlq": lambda scene: ended(scene, "fails"),
    "dispatch_skipped": lambda scene: ended(scene, "skipped"),
    "dispatch_cancelled_predicate": cancelled_while_it_is_decided,
    "dispatch_cancelled_waiting": lambda scene: cancelled(scene, "waits", "retry_wait"),
    "dispatch_cancelled_running": lambda scene: cancelled(scene, "hangs", "attempt"),
    "dispatch_followed": lambda scene: ended(scene, "followed"),
    "dispatch_followed_cancelled": lambda scene: cancelled(scene, "followed_long", "following"),
    "dispatch_gated": lambda scene: ended(scene, "gated"),
    "dispatch_held_back": held_back,
    "pump_continued": pump_continued,
    "consume_drain": lambda scene: consumed(scene, {"succeeds": 5, "fails_twice": 2, "skipped": 1}),
    "consume_inline": lambda scene: consumed(
        scene, {"succeeds": 5, "fails_twice": 2, "retries_late": 1}, inline=True
    ),
    "consume_continued": lambda scene: consumed(
        scene, {"fails_twice": 4, "succeeds": 8}, first_run=True, history_limit=40, ttl_ms=1000
    ),
}


async def record(name: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        manifest = written_manifest(Path(folder))
        log = await open_event_log(StoreSettings("memory"))
        environment = await WorkflowEnvironment.start_local(
            data_converter=data_converter,
            dev_server_existing_path=str(find_binary()),
            dev_server_extra_args=[part for setting in SETTINGS for part in setting],
        )
        async with environment:
            scene = Scene(environment, log, manifest)
            consumer = name.startswith("consume")
            options = WorkerOptions(
                pump=name.startswith("pump"),
                tasks=consumer_queue(log.store_id, "replay", "recorder") if consumer else None,
            )
            async with running_worker(environment.client, log, manifest, options, agents=Agents()):
                handle = await SCENARIOS[name](scene)
            history = await handle.fetch_history()
        await log.close()
    write(name, history.to_json_dict())


def written_manifest(folder: Path) -> Manifest:
    (folder / "lib.py").write_text(LIB)
    path = folder / "harn.toml"
    path.write_text(MANIFEST)
    return load_manifest(path)


def write(name: str, history: dict[str, Any]) -> None:
    file = HISTORIES / f"{name}.json"
    file.write_text(json.dumps(impersonal(history), indent=1, sort_keys=True) + "\n")
    sys.stdout.write(f"{file.name}: {len(history['events'])} events\n")


def impersonal(value: Any) -> Any:
    """Without the names of hosts and files of whoever recorded it; replay needs none of them."""
    if isinstance(value, list):
        return [impersonal(each) for each in value]
    if isinstance(value, dict):
        return {key: impersonal(each) for key, each in value.items() if key != "stackTrace"}
    if isinstance(value, str) and PROCESS.fullmatch(value):
        return "recorder"
    return value


async def main(names: list[str]) -> None:
    HISTORIES.mkdir(exist_ok=True)
    for name in names or SCENARIOS:
        await record(name)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
    sys.stdout.flush()
    os._exit(0)

"""Replays of dispatches at every stage: each is a dispatch of its own, whatever the first does."""

from __future__ import annotations

from datetime import timedelta

from harn_temporal.events import new_event
from harn_temporal.headers import OUTCOME
from harn_temporal.ingestion import ingest
from harn_temporal.registry import register
from harn_temporal.worker import WorkerOptions, running_worker
from harn_temporal.workflows.dispatch import DispatchWorkflow

LONG = 'retry = { max = 3, backoff = "linear", delay_ms = 3600000 }'
AT_ONCE = WorkerOptions(grace=timedelta(milliseconds=100))
STAGES = {
    "runs": ("runs_async", ()),
    "waits": ("fails", (LONG,)),
    "dead": ("fails", ('retry = { max = 1, backoff = "immediate" }',)),
    "skipped": ("succeeds", ('when = "event.payload.n > 1"',)),
}


async def test_what_runs_waits_died_or_was_skipped_and_was_cancelled(
    temporal_client, make_package, triggers
):
    package = make_package(
        *(
            triggers.one(handler, *lines, trigger_id=stage)
            for stage, (handler, lines) in STAGES.items()
        )
    )
    log, manifest = package.log, package.manifest
    bindings = await register(log, manifest.package, manifest.bindings)
    event = new_event(provider="github", kind="push", payload={"n": 1}, dedupe_key="once")
    taken = {
        each.trigger_id: each.workflow_id
        for each in await ingest(log, bindings, event, package=manifest.package)
    }

    def ends(found, suffix=""):
        named = {stage: found.get(f"{first}{suffix}") for stage, first in taken.items()}
        return {stage: end.headers[OUTCOME] for stage, end in named.items() if end is not None}

    async with running_worker(temporal_client, log, manifest, AT_ONCE):
        await package.exists("begun")

        async def waits():
            handle = temporal_client.get_workflow_handle_for(DispatchWorkflow.run, taken["waits"])
            return (await handle.query(DispatchWorkflow.state)).phase == "retry_wait"

        await package.until(waits)
        assert ends(await package.ended(2)) == {"dead": "dlq", "skipped": "skipped"}
    package.change(*(triggers.one("succeeds", trigger_id=stage) for stage in STAGES))
    async with running_worker(temporal_client, log, package.manifest, AT_ONCE):
        ran = await package.run("trigger", "replay", event.id, "--version", "current", "--json")
        latest = {item["binding_key"]: item["latest_status"] for item in ran.json["items"]}
        assert latest == {
            "runs@v1": "in_progress",
            "waits@v1": "retry_scheduled",
            "dead@v1": "dlq",
            "skipped@v1": "skipped",
        }
        found = await package.ended(6)
        assert ends(found, "/replay/1") == dict.fromkeys(STAGES, "succeeded")
        cancelled = await package.run("trigger", "cancel", event.id, "--json")
        assert cancelled.json["executed_count"] == 2
        found = await package.ended(8)
        assert ends(found) == {
            "runs": "cancelled",
            "waits": "cancelled",
            "dead": "dlq",
            "skipped": "skipped",
        }
        # The cancelled ones as well: a request to cancel does not mean their replays.
        (package.folder / "begun").unlink()
        ran = await package.run("trigger", "replay", event.id, "--version", "recorded", "--json")
        assert ran.json["executed_count"] == 4
        await package.exists("begun")
        found = await package.ended(10)
        assert ends(found, "/replay/2") == {"dead": "dlq", "skipped": "skipped"}
    assert len(await log.read("trigger.inbox.claims")) == 4


async def test_a_large_event_is_cancelled_and_replayed(temporal_client, make_package, triggers):
    """Ten MiB in, and as much out: what workflows cannot carry goes through the log."""
    package = make_package(triggers.one("runs_async"))
    text = "e" * (10 * 2**20 - len('{"text":""}'))
    event, first = await package.ingest({"text": text})
    async with running_worker(temporal_client, package.log, package.manifest, AT_ONCE):
        await package.exists("begun")
        ran = await package.run("trigger", "cancel", event.id, "--json")
        assert ran.json["executed_count"] == 1
        assert await package.statuses() == ["cancelled"]
    package.change(triggers.one("echoes"))
    async with running_worker(temporal_client, package.log, package.manifest, AT_ONCE):
        ran = await package.run(
            "trigger", "replay", event.id, "--version", "current", "--wait", "--json"
        )
        assert [item["outcome"] for item in ran.json["items"]] == ["succeeded"]
        end = (await package.ended(2))[f"{first.workflow_id}/replay/1"]
        assert end.payload["result"] == text
        handle = temporal_client.get_workflow_handle(f"{first.workflow_id}/replay/1")
        outcome = await handle.result()
    assert (outcome["result"], outcome["result_address"]["topic"]) == (None, "trigger.outbox")

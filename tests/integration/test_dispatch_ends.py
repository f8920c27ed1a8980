"""Each way in which a handler can end, and what the dispatch makes of it."""

from __future__ import annotations

import pytest

from harn_temporal.contracts import INLINE_EVENT_LIMIT, INLINE_RESULT_LIMIT
from harn_temporal.temporal.starter import start_dispatch
from harn_temporal.worker import WorkerOptions, running_worker

LIB = """
import asyncio
import time

from harn_temporal import Denied, Waiting

async def denied(event):
    raise Denied("not in this repository")

def waiting(event):
    raise Waiting("for a review")

def missing(event):
    raise NotImplementedError("only pushes to main")

def not_json(event):
    return {1, 2}

def leaves(event):
    raise SystemExit(3)

async def cancels_itself(event):
    asyncio.current_task().cancel()
    await asyncio.sleep(0)

class Unprintable(Exception):
    def __str__(self):
        raise RuntimeError("no text")

def unprintable(event):
    raise Unprintable

async def slow_async(event):
    await asyncio.Event().wait()

def slow_def(event, context):
    while not context.cancelled:
        time.sleep(0.005)

class Response:
    status_code = 503

class HTTPError(Exception):
    response = Response()

def provider_down(event):
    raise HTTPError("503")

def large(event):
    return "x" * 300_000

def length(event):
    return len(event.raw["text"])
"""

ONE = 'retry = { max = 1, backoff = "immediate" }'


@pytest.fixture
def dispatched(temporal_client, make_package, harness):
    async def run(handler, *lines, payload=None, **changes):
        package = make_package(LIB, harness.trigger(handler, *lines))
        request = await package.request(payload, **changes)
        log = package.log
        options = WorkerOptions(pump=False)
        async with running_worker(temporal_client, log, package.manifest, options):
            started = await start_dispatch(temporal_client, log, request)
            return package, await started.handle.result()

    return run


@pytest.mark.parametrize(
    ("handler", "status", "recorded", "error"),
    [
        ("denied", "failed", "denied", "Denied: not in this repository"),
        ("waiting", "waiting", "waiting", "for a review"),
        ("missing", "failed", "failed", "NotImplementedError: only pushes to main"),
    ],
)
async def test_ends_that_are_not_retried(dispatched, handler, status, recorded, error):
    package, outcome = await dispatched(handler, 'retry = { max = 3, backoff = "immediate" }')
    assert (outcome.status, outcome.attempt_count, outcome.error) == (status, 1, error)
    [attempt] = await package.log.read("trigger.attempts")
    assert attempt.payload["outcome"] == recorded
    assert await package.log.read("trigger.dlq") == []


@pytest.mark.parametrize(
    ("handler", "error", "error_class"),
    [
        ("not_json", "cannot be recorded", "handler_panic"),
        ("leaves", "sys.exit(3)", "handler_panic"),
        ("cancels_itself", "the handler cancelled itself", "handler_panic"),
        ("unprintable", "Unprintable: its text cannot be shown", "handler_panic"),
        ("provider_down", "HTTPError: 503", "provider_5xx"),
    ],
)
async def test_failures_end_in_the_dlq_with_their_class(dispatched, handler, error, error_class):
    package, outcome = await dispatched(handler, ONE)
    assert outcome.status == "dlq"
    assert error in outcome.error
    moved, entry = await package.log.read("trigger.dlq")
    assert moved.payload["error_class"] == error_class
    assert entry.payload["error_class"] == error_class


@pytest.mark.parametrize("handler", ["slow_async", "slow_def"])
async def test_a_handler_past_its_timeout(dispatched, handler):
    package, outcome = await dispatched(handler, ONE, 'timeout = "80ms"')
    assert (outcome.status, outcome.error) == ("dlq", "the handler did not end within 80 ms")
    [attempt] = await package.log.read("trigger.attempts")
    assert attempt.payload["outcome"] == "timeout"
    moved, _ = await package.log.read("trigger.dlq")
    assert moved.payload["error_class"] == "handler_timeout"


async def test_a_handler_that_is_gone_counts_as_failed(dispatched, harness, make_package):
    package = make_package(LIB, harness.trigger("length"), package="before")
    old = await package.request()
    retry = old.binding.retry.model_copy(update={"max_attempts": 1})
    binding = old.binding.model_copy(
        update={
            "package": "demo",
            "retry": retry,
            "handler": old.binding.handler.model_copy(update={"uri": "handlers::renamed"}),
        }
    )
    _, outcome = await dispatched("length", ONE, binding=binding)
    assert outcome.target_uri == "handlers::renamed"
    assert outcome.status == "dlq"
    assert "renamed" in outcome.error


async def test_a_large_result_is_referenced(dispatched):
    package, outcome = await dispatched("large", ONE)
    assert (outcome.status, outcome.result) == ("succeeded", None)
    address = outcome.result_address
    [record] = await package.log.read(address.topic, after=address.event_id - 1, limit=1)
    assert record.kind == "dispatch_succeeded"
    assert record.payload["result"] == "x" * 300_000
    assert len(record.raw) > INLINE_RESULT_LIMIT


async def test_a_large_event_is_read_by_its_address(dispatched):
    text = "y" * (3 * 1024 * 1024)
    _, outcome = await dispatched("length", ONE, payload={"text": text}, event=None)
    assert (outcome.status, outcome.result) == ("succeeded", len(text))
    assert len(text) > INLINE_EVENT_LIMIT

"""A handler call and what interrupts it."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest

from harn_temporal.activities.handler_call import HandlerCall
from harn_temporal.activities.interruption import Interruption
from harn_temporal.context import HandlerContext
from harn_temporal.handlers import Handler


@pytest.fixture
def call(request_):
    with ThreadPoolExecutor(1) as executor:

        def make(function, why, *, is_async=True):
            handler = Handler("handle", function, wants_context=True, is_async=is_async)
            context = HandlerContext("e", "t", "on-push", "on-push@v1", 1, 3, 0)
            return HandlerCall(
                handler,
                request_.event,
                context,
                executor,
                interruption=lambda: why,
                patience_s=0.2,
            )

        yield make


async def interrupted(call, begun):
    running = asyncio.create_task(call.run(10_000))
    await asyncio.wait_for(begun.wait(), 5)
    running.cancel()
    return running


async def test_a_pause_by_an_operator_does_not_stop_it(call):
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def handle(event, context):
        begun.set()
        await go_on.wait()
        return "done"

    running = await interrupted(call(handle, Interruption.IGNORED), begun)
    await asyncio.sleep(0)
    go_on.set()
    assert (await running).result == "done"


@pytest.mark.parametrize("why", [Interruption.SHUTDOWN, Interruption.GONE])
async def test_shutdown_and_a_lost_activity_are_raised_on(call, why):
    begun, told = asyncio.Event(), asyncio.Event()

    async def handle(event, context):
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            assert context.cancelled
            told.set()

    running = await interrupted(call(handle, why), begun)
    with pytest.raises(asyncio.CancelledError):
        await running
    assert told.is_set()


async def test_a_handler_that_swallows_its_cancellation_is_left_behind(call, caplog):
    begun, release = asyncio.Event(), asyncio.Event()

    async def handle(event, context):
        begun.set()
        for _ in range(2):
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue

    running = await interrupted(call(handle, Interruption.CANCELLED), begun)
    end = await asyncio.wait_for(running, 5)
    assert (end.status, end.error) == ("cancelled", "cancelled")
    assert [record.msg for record in caplog.records] == ["handler_left_behind"]
    release.set()

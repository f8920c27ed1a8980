import asyncio
import contextvars
import logging
import threading
from collections import Counter

import pytest
from pydantic import BaseModel

from harn_temporal.errors import Denied, NotJsonError
from harn_temporal.handlers import Handler

tenant = contextvars.ContextVar("tenant", default="none")


def handler(function, *, wants_context=False, is_async=False):
    return Handler(name="h::on", function=function, wants_context=wants_context, is_async=is_async)


async def test_each_kind_of_handler_gets_what_it_takes(folder, event, context, executor):
    loader = folder(
        {
            "lib.py": """
                def plain(event): return [event.raw, None]
                def told(event, context): return [event.raw, context.attempt]
                async def later(event): return [event.raw, None]
                async def later_told(event, context): return [event.raw, context.attempt]
            """
        }
    )
    results = [
        await loader.load(name).call(event, context, executor)
        for name in ("plain", "told", "later", "later_told")
    ]
    assert results == [[{"n": 1}, None], [{"n": 1}, 2], [{"n": 1}, None], [{"n": 1}, 2]]


async def test_a_def_runs_in_the_executor_with_the_callers_context_variables(
    event, context, executor
):
    def on(_event):
        seen = [threading.current_thread().name, tenant.get()]
        tenant.set("changed")
        return seen

    tenant.set("acme")
    assert await handler(on).call(event, context, executor) == ["handler_0", "acme"]
    assert tenant.get() == "acme"


async def test_an_async_def_runs_in_the_loop(event, context, executor):
    async def on(_event):
        return threading.current_thread().name

    name = await handler(on, is_async=True).call(event, context, executor)
    assert name == threading.current_thread().name


async def test_a_def_that_returns_a_coroutine_is_awaited(event, context, executor):
    async def inner():
        return {"loop": asyncio.get_running_loop() is loop}

    loop = asyncio.get_running_loop()
    assert await handler(lambda _: inner()).call(event, context, executor) == {"loop": True}


async def test_results_become_json(event, context, executor):
    class Answer(BaseModel):
        n: int

    def on(_event):
        return {"a": (1, 2), "b": Answer(n=3), "c": 2**64, "d": "\ud800", "e": Counter("xx")}

    assert await handler(on).call(event, context, executor) == {
        "a": [1, 2],
        "b": {"n": 3},
        "c": "18446744073709551616",
        "d": "\ufffd",
        "e": {"x": 2},
    }


async def test_a_result_that_json_cannot_hold_says_where(event, context, executor):
    async def on(_event):
        return {"rows": [{"when": object()}]}

    with pytest.raises(NotJsonError) as caught:
        await handler(on, is_async=True).call(event, context, executor)
    assert str(caught.value).startswith(
        "the result of h::on cannot be recorded: $.rows[0].when is a object"
    )


@pytest.mark.parametrize(("value", "expected"), [([], False), (object(), True), (None, False)])
async def test_a_predicate_may_return_anything(event, context, executor, value, expected):
    assert await handler(lambda _: value).decide(event, context, executor) is expected


async def test_errors_come_out_as_they_are(event, context, executor):
    def refuse(_event):
        raise Denied("not for us")

    async def fail(_event):
        raise KeyError("x")

    with pytest.raises(Denied, match="not for us"):
        await handler(refuse).call(event, context, executor)
    with pytest.raises(KeyError):
        await handler(fail, is_async=True).call(event, context, executor)


@pytest.mark.parametrize("is_async", [True, False])
@pytest.mark.parametrize(
    "case",
    [
        (SystemExit(3), "h::on called sys.exit(3)"),
        (StopIteration(), "StopIteration"),
        (asyncio.CancelledError(), "h::on raised CancelledError"),
    ],
)
async def test_an_error_that_would_break_the_worker_is_only_a_failure(
    event, context, executor, is_async, case
):
    error, message = case

    def on(_event):
        raise error

    async def on_async(_event):
        raise error

    call = handler(on_async if is_async else on, is_async=is_async).call(event, context, executor)
    with pytest.raises(RuntimeError) as caught:
        await asyncio.wait_for(call, 10)
    assert message in str(caught.value)


async def test_cancelling_reaches_a_def_through_its_context(event, context, executor):
    started, seen = threading.Event(), threading.Event()

    def on(_event, told):
        started.set()
        while not told.cancelled:
            threading.Event().wait(0.005)
        seen.set()

    call = asyncio.create_task(handler(on, wants_context=True).call(event, context, executor))
    await asyncio.to_thread(started.wait, 10)
    assert context.cancelled is False
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert context.cancelled is True
    assert await asyncio.to_thread(seen.wait, 10)


async def test_cancelling_reaches_an_async_def_as_cancelled_error(event, context, executor):
    started, seen = asyncio.Event(), []

    async def on(_event):
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    call = asyncio.create_task(handler(on, is_async=True).call(event, context, executor))
    await started.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert seen == ["cancelled"]
    assert context.cancelled is True


async def test_a_def_that_has_not_begun_when_it_is_cancelled_never_does(event, context, executor):
    release, ran = threading.Event(), []
    blocker = executor.submit(release.wait, 10)
    call = asyncio.create_task(handler(ran.append).call(event, context, executor))
    await asyncio.sleep(0)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    release.set()
    blocker.result(10)
    executor.submit(int).result(10)
    assert ran == []


def test_the_log_of_a_context_carries_its_ids(context, caplog):
    with caplog.at_level(logging.INFO):
        context.log.info("labelled", extra={"label": "bug"})
    record = caplog.records[0]
    assert (record.name, record.getMessage()) == ("harn_temporal.handler", "labelled")
    assert (record.event_id, record.attempt, record.label) == ("trigger_evt_1", 2, "bug")


async def test_a_def_that_raises_keyboard_interrupt_does_not_end_the_loop(event, context, executor):
    def on(_event):
        raise KeyboardInterrupt

    with pytest.raises(RuntimeError, match="h::on raised KeyboardInterrupt"):
        await handler(on).call(event, context, executor)

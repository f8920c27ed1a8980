from __future__ import annotations

import threading

import pytest

from harn_temporal.activities.handler_threads import HandlerThreads


def test_calls_that_hang_take_no_thread_from_the_next_ones():
    executor, release = HandlerThreads(), threading.Event()
    hanging = [executor.submit(release.wait) for _ in range(50)]
    assert executor.submit(lambda value: value + 1, 1).result(5) == 2
    release.set()
    assert [future.result(5) for future in hanging] == [True] * 50


def test_what_a_call_raises_is_told():
    with pytest.raises(ZeroDivisionError):
        HandlerThreads().submit(lambda: 1 / 0).result(5)


def test_nothing_waits_for_them_at_exit():
    seen = HandlerThreads().submit(threading.current_thread).result(5)
    assert seen.daemon

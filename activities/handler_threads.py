"""Threads for `def` handlers and predicates."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class HandlerThreads(Executor):
    """A thread for each call; the worker's slots are what limits them.

    A pool would lose a thread to each handler that hangs past its timeout, until the handlers
    of others wait for none. And its threads are waited for at exit; these are not.
    """

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        future: Future[T] = Future()
        thread = threading.Thread(
            target=_run, args=(future, fn, args, kwargs), name="harn-handler", daemon=True
        )
        thread.start()
        return future


def _run(future: Future[T], fn: Callable[..., T], args: Any, kwargs: Any) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = fn(*args, **kwargs)
    except BaseException as error:  # noqa: BLE001 - as in any executor: the caller is told
        future.set_exception(error)
    else:
        future.set_result(result)

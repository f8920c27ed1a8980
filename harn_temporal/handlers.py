"""Handlers: functions that a manifest names, found and checked when it is loaded."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import inspect
import traceback
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from pydantic import JsonValue

from harn_temporal.canonical import PAYLOAD_DEPTH_LIMIT, clean
from harn_temporal.context import HandlerContext, mark_cancelled
from harn_temporal.errors import HandlerLoadError, NotJsonError
from harn_temporal.events import TriggerEvent
from harn_temporal.handler_imports import HandlerFolder

DEFAULT_MODULE = "lib.py"

_WANTED = "a handler takes (event) or (event, context)"

_Result = TypeVar("_Result")


@dataclass(frozen=True)
class _Deferred:
    """What a `def` returned in place of a result: it is awaited where the event loop is."""

    awaitable: Awaitable[Any]


@dataclass(frozen=True)
class Handler:
    """A function that can be called with an event; `name` is the manifest's word for it."""

    name: str
    function: Callable[..., Any]
    wants_context: bool
    is_async: bool

    async def call(
        self,
        event: TriggerEvent,
        context: HandlerContext,
        executor: concurrent.futures.Executor,
    ) -> JsonValue:
        """What the handler returns, as JSON. Raises what it raises.

        A `def` runs in `executor`, with the caller's context variables. Cancelling this call makes
        `context.cancelled` true and raises CancelledError at once: a thread cannot be interrupted,
        so a `def` goes on until it looks, and its result is dropped. NotJsonError says which part
        of a result JSON cannot hold.
        """
        return await self._run(self._as_json, event, context, executor)

    async def decide(
        self,
        event: TriggerEvent,
        context: HandlerContext,
        executor: concurrent.futures.Executor,
    ) -> bool:
        """Whether the function, called as a predicate, returns something true."""
        return await self._run(bool, event, context, executor)

    async def _run(
        self,
        finish: Callable[[Any], _Result],
        event: TriggerEvent,
        context: HandlerContext,
        executor: concurrent.futures.Executor,
    ) -> _Result:
        arguments = (event, context) if self.wants_context else (event,)
        try:
            if self.is_async:
                return finish(await self.function(*arguments))
            work = partial(contextvars.copy_context().run, self._in_thread, finish, arguments)
            ended = await asyncio.get_running_loop().run_in_executor(executor, work)
            if isinstance(ended, _Deferred):
                return finish(await ended.awaitable)
        except asyncio.CancelledError as error:
            mark_cancelled(context)
            if not _being_cancelled():
                raise RuntimeError(f"{self.name} raised CancelledError of its own") from error
            raise
        except SystemExit as error:  # would end the worker, and with it everyone's handlers
            raise RuntimeError(f"{self.name} called sys.exit({error.code!r})") from error
        return ended

    def _in_thread(
        self, finish: Callable[[Any], _Result], arguments: tuple[Any, ...]
    ) -> _Result | _Deferred:
        try:
            returned = self.function(*arguments)
        except (StopIteration, asyncio.CancelledError, KeyboardInterrupt) as error:
            # A future cannot carry the first, takes the second for its own cancellation, and
            # hands the third to the event loop, which ends on it.
            raise RuntimeError(f"{self.name} raised {type(error).__name__}") from error
        if inspect.isawaitable(returned):  # a decorated `async def` may look like a `def`
            return _Deferred(returned)
        return finish(returned)

    def _as_json(self, returned: Any) -> JsonValue:
        try:
            return clean(returned, depth_limit=PAYLOAD_DEPTH_LIMIT)
        except NotJsonError as error:
            raise NotJsonError(f"the result of {self.name} cannot be recorded: {error}") from error


class HandlerLoader:
    """Finds the handlers of one manifest. `exports` maps a module's name to its file or path.

    A file is relative to `root`, the manifest's folder, and `lib.harn` reads as `lib.py`; anything
    without a suffix is a dotted import path, looked up in that folder first.
    """

    def __init__(self, root: Path, exports: Mapping[str, str]) -> None:
        self._folder = HandlerFolder(root)
        self._exports = dict(exports)

    def load(self, name: str) -> Handler:
        """The handler called `name` or `module::name`; HandlerLoadError says what is wrong."""
        module_name, separator, function_name = name.rpartition("::")
        target = self._exported(name, module_name) if separator else DEFAULT_MODULE
        module = self._import(name, target)
        function = self._function(name, module, target, function_name)
        return _checked(name, function)

    def module(self, name: str | None = None) -> ModuleType:
        """The module that [exports] calls `name`, lib.py without one. Raises HandlerLoadError."""
        target = DEFAULT_MODULE if name is None else self._exported(name, name)
        return self._import(name or DEFAULT_MODULE, target)

    def _exported(self, name: str, module_name: str) -> str:
        target = self._exports.get(module_name)
        if target is not None:
            return target
        known = ", ".join(sorted(self._exports)) or "nothing"
        raise HandlerLoadError(
            f'handler "{name}": [exports] has no "{module_name}"; it has {known}. '
            f'Add a line such as {module_name or "handlers"} = "lib.py"'
        )

    def _import(self, name: str, target: str) -> ModuleType:
        dotted = self._dotted(name, target)
        try:
            return self._folder.import_module(dotted)
        except (Exception, SystemExit) as error:  # a user's code may raise anything
            problem = self._import_problem(error)
            raise HandlerLoadError(f'handler "{name}": {problem}') from error

    def _dotted(self, name: str, target: str) -> str:
        file = target.removesuffix(".harn") + ".py" if target.endswith(".harn") else target
        if not file.endswith(".py") and "/" not in file:
            return file
        path = self._folder.root / file
        if not path.is_file():
            raise HandlerLoadError(
                f'handler "{name}": there is no file {path}. '
                "Create it, or correct the path in [exports]"
            )
        parts = Path(file).with_suffix("").parts
        if any("." in part or part == "/" for part in parts):
            raise HandlerLoadError(
                f'handler "{name}": {file} cannot be imported; name a file in the folder of the '
                "manifest, without dots in its name"
            )
        return ".".join(parts)

    def _import_problem(self, error: BaseException) -> str:
        if isinstance(error, SyntaxError) and error.filename:
            return f"{error.filename}:{error.lineno}: {type(error).__name__}: {error.msg}"
        frames = traceback.extract_tb(error.__traceback__)
        root = str(self._folder.root)
        own = [frame for frame in frames if frame.filename.startswith(root)]
        place = f"{own[-1].filename}:{own[-1].lineno}: " if own else ""
        return f"{place}{type(error).__name__}: {self._folder.public_name(str(error))}"

    def _function(
        self, name: str, module: ModuleType, target: str, function_name: str
    ) -> Callable[..., Any]:
        function = getattr(module, function_name, None)
        if callable(function) and not inspect.isclass(function):
            return function  # type: ignore[no-any-return]  # callable() proved it
        file = module.__file__ or target
        if function is not None:
            raise HandlerLoadError(
                f'handler "{name}": {function_name} in {file} is a {type(function).__name__}, '
                "not a function"
            )
        functions = [
            each
            for each, value in vars(module).items()
            if inspect.isfunction(value) and value.__module__ == module.__name__
        ]
        near = get_close_matches(function_name, functions, n=1)
        hint = f"did you mean {near[0]}?" if near else f"it has {', '.join(functions) or 'none'}"
        raise HandlerLoadError(f'handler "{name}": {file} has no function {function_name}; {hint}')


def _being_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _checked(name: str, function: Callable[..., Any]) -> Handler:
    place = _place(function)
    called = function if inspect.isroutine(function) else getattr(function, "func", function)
    called = called if inspect.isroutine(called) else type(called).__call__
    if inspect.isgeneratorfunction(called) or inspect.isasyncgenfunction(called):
        raise HandlerLoadError(f'handler "{name}" ({place}) uses yield; return a value instead')
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError) as error:
        raise HandlerLoadError(
            f'handler "{name}" ({place}) shows no signature; {_WANTED}'
        ) from error
    alone, both = _binds(signature, 1), _binds(signature, 2)
    if not alone and not both:
        raise HandlerLoadError(f'handler "{name}" ({place}) takes {signature}; {_WANTED}')
    return Handler(
        name=name,
        function=function,
        wants_context=both and (not alone or _second_is_context(name, place, signature)),
        is_async=inspect.iscoroutinefunction(called),
    )


def _binds(signature: inspect.Signature, count: int) -> bool:
    try:
        signature.bind(*[None] * count)
    except TypeError:
        return False
    return True


def _second_is_context(name: str, place: str, signature: inspect.Signature) -> bool:
    """For a function that can be called either way: an optional argument has to be named so."""
    second = list(signature.parameters.values())[:2][-1]
    if second.kind is inspect.Parameter.VAR_POSITIONAL:
        raise HandlerLoadError(
            f'handler "{name}" ({place}) takes {signature}, which leaves open whether it wants the '
            f"context; {_WANTED} (a decorator shows it with functools.wraps)"
        )
    return second.name == "context"


def _place(function: Callable[..., Any]) -> str:
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None:
        return type(function).__name__
    return f"{code.co_filename}:{code.co_firstlineno}"

"""The EventLog over any backend: one thread writes, one reads, the event loop only waits."""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import TypeVar

from harn_temporal.clock import Clock
from harn_temporal.errors import StoreError, StoreUnavailableError
from harn_temporal.eventlog.log import EventLog, Observer, Reader, Transaction
from harn_temporal.eventlog.projections import begin_caught_up, use_live_generation
from harn_temporal.eventlog.rebuild import Rebuild
from harn_temporal.eventlog.records import Append, Appended, Record, TopicHead
from harn_temporal.eventlog.session import Backend, Session
from harn_temporal.eventlog.transaction import StoreReader, StoreTransaction, Tails
from harn_temporal.eventlog.watch import Watch

T = TypeVar("T")

_REBUILD_POLL_SECONDS = 0.05
_LOOKS = 3
"""How often a query tries to find the projections caught up before it becomes a writer."""


class Store(EventLog):
    """Made by `open_event_log`; `start` and `close` belong to its life."""

    def __init__(self, backend: Backend, clock: Clock) -> None:
        self._backend = backend
        self._clock = clock
        self._write_thread = ThreadPoolExecutor(1, thread_name_prefix="eventlog-write")
        self._read_thread: Executor = self._write_thread
        self._threads = [self._write_thread]
        self._sessions: list[Session] = []
        self._tails: Tails = {}
        self._observers: list[Observer] = []
        self._closed = False
        self._watch = Watch(self._position)

    async def start(self) -> None:
        """Open the store, make it where there is none, and see that its projections are ours."""
        self._writer = self._reader = await self._in_writer(self._open_session)
        if self._backend.reads_apart:
            self._read_thread = ThreadPoolExecutor(1, thread_name_prefix="eventlog-read")
            self._threads.append(self._read_thread)
            self._reader = await self._in_reader(self._open_session)
        await self._watch.start()
        if not await self._in_writer(self._projections_are_ours):
            await self._rebuild(unless_done=True)

    @property
    def store_id(self) -> str:
        return self._backend.store_id

    async def append(self, records: Sequence[Append], key: str | None = None) -> Appended:
        return await self.transact(lambda transaction: transaction.append(records, key))

    async def transact(self, work: Callable[[Transaction], T]) -> T:
        return await self._in_writer(functools.partial(self._transact, work))

    async def query(self, work: Callable[[Reader], T]) -> T:
        for _ in range(_LOOKS):
            found = await self._in_reader(functools.partial(self._query, work))
            if found is not None:
                return found[0]
            await self._in_writer(self._catch_up)
        return await self._in_writer(functools.partial(self._transact, work))

    async def read(self, topic: str, after: int = 0, limit: int = 1000) -> list[Record]:
        return await self.query(lambda reader: reader.read(topic, after, limit))

    async def topics(self, prefix: str = "") -> list[TopicHead]:
        return await self.query(lambda reader: reader.topics(prefix))

    async def changed(self, since: int, timeout: float) -> int:  # noqa: ASYNC109 - as in EventLog
        self._check_open()
        return await self._watch.changed(since, timeout)

    def observe(self, observer: Observer) -> None:
        self._observers.append(observer)

    async def rebuild(self) -> None:
        await self._rebuild(unless_done=False)

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        await self._watch.close()
        await asyncio.to_thread(self._close)

    async def _rebuild(self, *, unless_done: bool) -> None:
        while True:
            with self._backend.rebuild_lock() as held:
                if held:
                    await self._rebuild_alone(unless_done=unless_done)
                    return
            await asyncio.sleep(_REBUILD_POLL_SECONDS)

    async def _rebuild_alone(self, *, unless_done: bool) -> None:
        if unless_done and await self._in_writer(self._projections_are_ours):
            return  # another process was here first
        rebuild = Rebuild(self._writer)
        await self._in_writer(rebuild.begin)
        while not await self._in_writer(rebuild.step):
            pass
        while not await self._in_writer(rebuild.sweep):
            pass

    def _open_session(self) -> Session:
        session = self._backend.open()
        self._sessions.append(session)
        return session

    def _projections_are_ours(self) -> bool:
        self._writer.begin(write=False)
        try:
            return use_live_generation(self._writer)
        finally:
            self._writer.rollback()

    def _transact(self, work: Callable[[Transaction], T]) -> T:
        began = time.perf_counter()
        writer = self._writer
        begin_caught_up(writer)
        try:
            _check_projections(writer)
            transaction = StoreTransaction(writer, self._clock(), self._tails)
            result = work(transaction)
            writer.commit()
        except BaseException:
            writer.rollback()
            raise
        if self._observers and transaction.appended:
            taken = time.perf_counter() - began
            for observer in self._observers:
                observer(transaction.appended, taken)
        if transaction.tails:
            self._tails.update(transaction.tails)
            self._watch.appended(writer.position())
        return result

    def _catch_up(self) -> None:
        begin_caught_up(self._writer)
        self._writer.commit()

    def _query(self, work: Callable[[Reader], T]) -> tuple[T] | None:
        """None where others appended something that is not folded yet."""
        reader = self._reader
        reader.begin(write=False)
        try:
            if reader.behind():
                return None
            use_live_generation(reader)
            _check_projections(reader)
            return (work(StoreReader(reader, self._clock())),)
        finally:
            reader.rollback()

    def _close(self) -> None:
        for thread in self._threads:
            thread.shutdown(wait=True)
        for session in self._sessions:
            session.close()

    async def _position(self) -> int:
        return await self._in_reader(self._reader.position)

    async def _in_writer(self, work: Callable[[], T]) -> T:
        return await self._run(self._write_thread, work)

    async def _in_reader(self, work: Callable[[], T]) -> T:
        return await self._run(self._read_thread, work)

    async def _run(self, thread: Executor, work: Callable[[], T]) -> T:
        self._check_open()
        try:
            running = asyncio.get_running_loop().run_in_executor(thread, work)
        except RuntimeError as error:  # threads are gone while the interpreter ends
            raise StoreError(
                f"the EventLog {self._backend.place} cannot be used while the program exits"
            ) from error
        return await running

    def _check_open(self) -> None:
        if self._closed:
            raise StoreError(f"the EventLog {self._backend.place} was closed before this use of it")


def _check_projections(session: Session) -> None:
    if not session.generation:
        raise StoreUnavailableError(
            "the EventLog's projections are being made anew by another process; try again"
        )

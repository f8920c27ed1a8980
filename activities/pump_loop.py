"""The pump of a package: it starts a dispatch for each envelope after its durable cursor."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from harn_temporal.activities.envelopes import binding_named, dispatch_request
from harn_temporal.bindings import Binding
from harn_temporal.contracts import DispatchRequest, PumpReport
from harn_temporal.errors import DispatchRefusedError, StoreError, UnavailableError
from harn_temporal.eventlog.log import EventLog, Reader, Record, Transaction
from harn_temporal.eventlog.topics import INBOX_ENVELOPES, TENANT_PREFIX, is_of
from harn_temporal.headers import PACKAGE
from harn_temporal.naming import pump_consumer

logger = logging.getLogger("harn_temporal.pump")

Start = Callable[[DispatchRequest], Awaitable[object]]
"""Starts a dispatch unless it was started before. Raises UnavailableError to be tried again,
DispatchRefusedError where this request will never be taken."""

CHUNK = 16
"""Envelopes of one topic that are read, and admitted side by side, before the next topic's turn."""

PRESENCE_S = 10.0
"""The cursor is confirmed so often; other programs take a pump silent for longer for absent."""

FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 30.0


class Pump:
    """`current` holds the manifest's bindings by trigger id."""

    def __init__(
        self,
        log: EventLog,
        start: Start,
        *,
        package: str,
        current: Mapping[str, Binding],
        search_attributes: bool,
        heartbeat_timeout_ms: int,
    ) -> None:
        self._log = log
        self._start = start
        self._package = package
        self._current = current
        self._search_attributes = search_attributes
        self._heartbeat_timeout_ms = heartbeat_timeout_ms
        self._consumer_id = pump_consumer(package)
        self._definitions: dict[tuple[str, int], Mapping[str, Any]] = {}
        self._started = 0
        self._malformed = 0

    async def run(self, stop: asyncio.Event, *, lifetime_s: float) -> PumpReport:
        """Pump until `stop` is set or the lifetime is over. Outages are waited out here."""
        loop = asyncio.get_running_loop()
        end = loop.time() + lifetime_s
        self._started = self._malformed = 0
        mark, pause_s, confirmed = 0, FIRST_PAUSE_S, 0.0
        while not stop.is_set() and (rest := end - loop.time()) > 0:
            try:
                if loop.time() - confirmed >= PRESENCE_S or confirmed == 0:
                    await self._confirm()
                    confirmed = loop.time()
                if await self._round(stop):
                    continue
                mark = await self._changed(mark, min(PRESENCE_S, rest), stop)
                pause_s = FIRST_PAUSE_S
            except (UnavailableError, StoreError) as error:
                logger.warning("pump_waits", extra={"error": str(error), "pause_s": pause_s})
                await _until(stop, pause_s)
                pause_s = min(pause_s * 2, LONGEST_PAUSE_S)
        return PumpReport(started=self._started, malformed=self._malformed)

    async def _round(self, stop: asyncio.Event) -> bool:
        """One chunk of each topic that has something new. False when no topic had."""
        pending = await self._log.query(self._pending)
        for topic, cursor, head in pending:
            if stop.is_set():
                break
            records = await self._log.read(topic, after=cursor, limit=CHUNK)
            if records:
                await self._admit(topic, records)
            else:  # rows that somebody deleted: there is nothing to wait for
                await self._pass(topic, head)
        return bool(pending)

    def _pending(self, reader: Reader) -> list[tuple[str, int, int]]:
        heads = [
            head
            for prefix in (INBOX_ENVELOPES, TENANT_PREFIX)
            for head in reader.topics(prefix)
            if is_of(head.topic, INBOX_ENVELOPES)
        ]
        cursors = [(head, reader.cursor(head.topic, self._consumer_id)) for head in heads]
        return [
            (head.topic, cursor, head.last_id) for head, cursor in cursors if cursor < head.last_id
        ]

    async def _admit(self, topic: str, records: Sequence[Record]) -> None:
        """Start what is ours, side by side, and move the cursor past what was admitted."""
        results = await asyncio.gather(
            *(self._admit_one(record) for record in records), return_exceptions=True
        )
        failures = [place for place, result in enumerate(results) if result is not None]
        admitted = records[: failures[0]] if failures else records
        if admitted:
            await self._pass(topic, admitted[-1].event_id)
        if failures:
            failure = results[failures[0]]
            assert failure is not None
            raise failure

    async def _pass(self, topic: str, event_id: int) -> None:
        await self._log.transact(lambda tx: tx.ack(topic, self._consumer_id, event_id))

    async def _admit_one(self, record: Record) -> None:
        if record.kind != "event_ingested" or record.headers.get(PACKAGE) != self._package:
            return  # a claim, Harn's own, or another package's
        stored = await self._definition(record)
        try:
            request = dispatch_request(
                record,
                store_id=self._log.store_id,
                package=self._package,
                current=self._current,
                stored=stored,
                search_attributes=self._search_attributes,
                heartbeat_timeout_ms=self._heartbeat_timeout_ms,
            )
        except Exception as error:  # noqa: BLE001 - whatever one envelope holds, the next ones go on
            self._report(record, error)
            return
        try:
            await self._start(request)
        except DispatchRefusedError as error:
            self._report(record, error)
            return
        self._started += 1

    def _report(self, record: Record, error: Exception) -> None:
        self._malformed += 1
        logger.error(
            "envelope_malformed",
            extra={"topic": record.topic, "offset": record.event_id, "error": str(error)},
        )

    async def _definition(self, record: Record) -> Mapping[str, Any] | None:
        """The stored definition of the envelope's binding; it never changes, so it is kept."""
        named = binding_named(record)
        if named is None:
            return None
        if named not in self._definitions:
            found = await self._log.query(lambda reader: reader.bindings.definition(*named))
            if found is None:
                return None
            self._definitions[named] = found
        return self._definitions[named]

    async def _confirm(self) -> None:
        def work(tx: Transaction) -> None:
            tx.ack(
                INBOX_ENVELOPES, self._consumer_id, tx.cursor(INBOX_ENVELOPES, self._consumer_id)
            )

        await self._log.transact(work)

    async def _changed(self, mark: int, timeout_s: float, stop: asyncio.Event) -> int:
        """The next mark; early when the pump is told to stop."""
        changed = asyncio.ensure_future(self._log.changed(mark, timeout_s))
        stopped = asyncio.ensure_future(stop.wait())
        try:
            await asyncio.wait({changed, stopped}, return_when=asyncio.FIRST_COMPLETED)
            return changed.result() if changed.done() else mark
        finally:
            changed.cancel()
            stopped.cancel()


async def _until(stop: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await stop.wait()
    except TimeoutError:
        return

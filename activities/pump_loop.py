"""The pump of a package: it starts a dispatch for each envelope after its durable cursor."""

from __future__ import annotations

import asyncio
import logging

from harn_temporal.activities.envelopes import Envelopes
from harn_temporal.activities.pump_admission import Admissions, Start
from harn_temporal.activities.pump_intake import Intake, Look
from harn_temporal.contracts import PumpReport
from harn_temporal.errors import StoreError, UnavailableError
from harn_temporal.eventlog.log import EventLog, Transaction
from harn_temporal.eventlog.topics import INBOX_ENVELOPES
from harn_temporal.naming import pump_consumer
from harn_temporal.pump_figures import PumpFigures

logger = logging.getLogger("harn_temporal.pump")

PRESENCE_S = 10.0
"""The cursor is confirmed so often; other programs take a pump silent for longer for absent."""

GATHER_S = 0.05
"""How long a pump that was full waits for more room than for a few, so as to work in batches."""

SECOND_S = 1.0
"""Between two records of ends, where nothing else is recorded, and two counts of envelopes."""

FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 30.0


class Pump:
    """`envelopes` knows what is this package's; `figures` says how much may be outstanding."""

    def __init__(
        self, log: EventLog, start: Start, envelopes: Envelopes, figures: PumpFigures
    ) -> None:
        self.figures = figures
        self._log = log
        self._package = envelopes.package
        self._consumer_id = pump_consumer(envelopes.package)
        self._intake = Intake(envelopes, self._consumer_id, figures.max_outstanding)
        self._admissions = Admissions(log, start, envelopes, figures, self._consumer_id)
        self._reported = self._counted = 0.0
        self._unreported = False

    async def run(self, stop: asyncio.Event, *, lifetime_s: float) -> PumpReport:
        """Pump until `stop` is set or the lifetime is over. Outages are waited out here."""
        loop = asyncio.get_running_loop()
        end = loop.time() + lifetime_s
        before = self.figures.started, self.figures.malformed
        self.figures.running = True
        try:
            await self._pump_until(stop, end)
        finally:
            self.figures.running = False
        return PumpReport(
            started=self.figures.started - before[0], malformed=self.figures.malformed - before[1]
        )

    async def _pump_until(self, stop: asyncio.Event, end: float) -> None:
        loop = asyncio.get_running_loop()
        mark, pause_s, confirmed = 0, FIRST_PAUSE_S, 0.0
        while not stop.is_set() and (rest := end - loop.time()) > 0:
            try:
                if loop.time() - confirmed >= PRESENCE_S or confirmed == 0:
                    await self._confirm()
                    confirmed = loop.time()
                if not await self._round(stop):
                    patience = SECOND_S if self._unreported else PRESENCE_S
                    mark = await self._changed(mark, min(patience, rest), stop)
                pause_s = FIRST_PAUSE_S
            except (UnavailableError, StoreError) as error:
                logger.warning("pump_waits", extra={"error": str(error), "pause_s": pause_s})
                await _until(stop, pause_s)
                pause_s = min(pause_s * 2, LONGEST_PAUSE_S)

    async def _round(self, stop: asyncio.Event) -> bool:
        """Admit what there is room for. False where there is nothing, or no room."""
        look = await self._log.query(self._intake.look)
        if self._narrow(look):
            await _until(stop, GATHER_S)
            look = await self._log.query(self._intake.look)
        figures = self.figures
        figures.outstanding = look.outstanding
        figures.full = look.pending and look.outstanding >= figures.max_outstanding
        self._unreported = look.unreported
        await self._count_waiting()
        if look.batches and await self._admissions.admit(look):
            return True
        await self._report_ends()
        return False

    def _narrow(self, look: Look) -> bool:
        """A pump that was full has room again, but for a few only."""
        room = self.figures.max_outstanding - look.outstanding
        return self.figures.full and 0 < room < self.figures.max_outstanding // 4

    async def _count_waiting(self) -> None:
        """Counting takes as long as there are envelopes, so it is not done in every round."""
        now = asyncio.get_running_loop().time()
        if now - self._counted < SECOND_S:
            return
        self._counted = now
        waiting = await self._log.query(
            lambda reader: reader.dispatches.count_waiting(self._package)
        )
        self.figures.backlog = waiting.count
        self.figures.oldest_pending_at_ms = waiting.oldest_ms

    async def _report_ends(self) -> None:
        """In a transaction of their own where there is no admission to write them along."""
        now = asyncio.get_running_loop().time()
        if not self._unreported or now - self._reported < SECOND_S:
            return
        self._reported = now
        self.figures.completed += await self._log.transact(self._admissions.report)

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

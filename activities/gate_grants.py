"""Tells again who was let through a gate: the worker that did it may have died just then."""

from __future__ import annotations

import asyncio
import logging

from harn_temporal.activities.gate_wakes import Wakes
from harn_temporal.errors import StoreError, UnavailableError
from harn_temporal.eventlog.gate_tables import StoredPermit
from harn_temporal.eventlog.log import EventLog, Reader
from harn_temporal.gates.holding import FAR_RECHECK_MS

logger = logging.getLogger("harn_temporal.gates")

INTERVAL_S = 5.0
SETTLED_MS = 2_000
"""Who was granted a permit later than that has just been signalled, or is about to be."""

LIMIT = 1_000
"""Of permits that are looked at in a round, the newest first."""


class GrantWatch:
    """Every worker looks for holders that waited for their permit and have not begun with it.

    Each permit is told of once by each worker: after `FAR_RECHECK_MS` its holder asks by itself.
    """

    def __init__(self, log: EventLog, wakes: Wakes) -> None:
        self._log = log
        self._wakes = wakes
        self._told: set[tuple[str, str]] = set()

    async def run(self) -> None:
        """Look, and again after the interval, until cancelled. What fails is tried next time."""
        while True:
            try:
                await self.once()
            except (UnavailableError, StoreError) as error:
                logger.warning("grants_not_read", extra={"error": str(error)})
            await asyncio.sleep(INTERVAL_S)

    async def once(self) -> None:
        found = {(each.holder, each.permit_id): each for each in await self._log.query(_idle)}
        self._wakes.tell(holder for holder, _ in found.keys() - self._told)
        self._told = set(found)


def _idle(reader: Reader) -> list[StoredPermit]:
    """Of holders that run no attempt now; one in a short retry wait is among them, unharmed."""
    now_ms = reader.now_ms
    permits = reader.gates.waited_for(now_ms - FAR_RECHECK_MS, now_ms - SETTLED_MS, LIMIT)
    return [each for each in permits if not _runs(reader, each.holder)]


def _runs(reader: Reader, holder: str) -> bool:
    dispatch = reader.dispatches.get(holder)
    return dispatch is not None and dispatch.started_attempt > dispatch.ended_attempt

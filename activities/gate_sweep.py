"""The sweep of gates: permits whose time is over, or whose holder is gone without a word."""

from __future__ import annotations

import asyncio
import logging

from harn_temporal.activities.gate_wakes import Wakes
from harn_temporal.activities.sweep import SIDE_BY_SIDE, Describe, Life
from harn_temporal.eventlog.gate_tables import StoredPermit
from harn_temporal.eventlog.log import EventLog, Transaction
from harn_temporal.gates.decisions import Wake
from harn_temporal.gates.leaving import abandon, sweep
from harn_temporal.naming import JOB_PREFIX

logger = logging.getLogger("harn_temporal.sweep")

GONE = "gone"
TERMINATED = "terminated"
OLD_MS = 60_000
"""Nobody is asked about a permit that is younger."""

PAGE = 100


class GateSweep:
    """Beside the sweep of dispatches, of which `release` is the part in its transactions."""

    def __init__(self, log: EventLog, describe: Describe, wakes: Wakes) -> None:
        self._log = log
        self._describe = describe
        self._wakes = wakes
        self._to_tell: list[Wake] = []  # by the writer of the store, for `once`

    def release(self, tx: Transaction, workflow_id: str) -> None:
        """Take everything from a dispatch that was terminated."""
        self._to_tell += abandon(tx, workflow_id, reason=TERMINATED)

    async def once(self) -> None:
        told, self._to_tell = self._to_tell, []
        self._wakes.send(told)
        await self._expire()
        before_ms = await self._log.query(lambda reader: reader.now_ms) - OLD_MS
        after: StoredPermit | None = None
        while page := await self._page(after):
            old = [each for each in page if each.acquired_at_ms < before_ms]
            for start in range(0, len(old), SIDE_BY_SIDE):
                some = old[start : start + SIDE_BY_SIDE]
                await asyncio.gather(*(self._look_at(each) for each in some))
            after = page[-1]

    async def _expire(self) -> None:
        done = False
        while not done:
            swept = await self._log.transact(sweep)
            self._wakes.send(swept.wakes)
            done = swept.done

    async def _page(self, after: StoredPermit | None) -> list[StoredPermit]:
        return await self._log.query(lambda reader: reader.gates.all_permits(after, PAGE))

    async def _look_at(self, permit: StoredPermit) -> None:
        life = await self._describe(permit.holder)
        if not _is_gone(permit, life):
            return
        wakes = await self._log.transact(lambda tx: _take(tx, permit))
        logger.warning("permit_taken_back", extra={"holder": permit.holder, "life": life})
        self._wakes.send(wakes)


def _is_gone(permit: StoredPermit, life: Life) -> bool:
    """A job that its consumer runs in its own history is no workflow that Temporal knows."""
    inline = life == "unknown" and permit.holder.startswith(JOB_PREFIX)
    return life != "open" and not inline


def _take(tx: Transaction, permit: StoredPermit) -> tuple[Wake, ...]:
    held = tx.gates.permit(permit.gate, permit.holder)
    if held is None or held.permit_id != permit.permit_id:
        return ()
    return abandon(tx, permit.holder, reason=GONE)

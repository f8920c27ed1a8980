"""A worker queue for callers of the EventLog: each call is a transaction, or a few short ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

from harn_temporal.eventlog.log import EventLog
from harn_temporal.queue.claiming import claim_caught_up
from harn_temporal.queue.enqueuing import enqueue
from harn_temporal.queue.keeping import release, renew
from harn_temporal.queue.models import (
    DEFAULT_TTL_MS,
    ClaimOrder,
    ClaimRef,
    Claims,
    EnqueueReceipt,
    Kept,
    NewJob,
    Settled,
    Settlement,
)
from harn_temporal.queue.pausing import pause, resume
from harn_temporal.queue.purging import purge_some
from harn_temporal.queue.settling import settle
from harn_temporal.scheduler.policy import Policy

ENQUEUED_AT_ONCE = 200
"""Jobs in one transaction of `enqueue_many`: well under 100 ms of work for ordinary events."""


async def enqueue_many(log: EventLog, jobs: Sequence[NewJob]) -> list[EnqueueReceipt]:
    """Append any number of jobs, in transactions that keep nobody waiting.

    When one of them is refused, those of the transactions before it are in the log.
    """
    receipts: list[EnqueueReceipt] = []
    for start in range(0, len(jobs), ENQUEUED_AT_ONCE):
        chunk = jobs[start : start + ENQUEUED_AT_ONCE]
        receipts += await log.transact(partial(enqueue, jobs=chunk))
    return receipts


class WorkerQueue:
    """A queue of one store, by name, under one policy."""

    def __init__(self, log: EventLog, name: str, policy: Policy) -> None:
        self._log = log
        self._policy = policy
        self.name = name

    async def claim(
        self,
        consumer_id: str,
        limit: int = 1,
        *,
        ttl_ms: int = DEFAULT_TTL_MS,
        excluded_keys: Iterable[str] = (),
        request_id: str | None = None,
    ) -> Claims:
        order = ClaimOrder(
            queue=self.name,
            consumer_id=consumer_id,
            limit=limit,
            ttl_ms=ttl_ms,
            excluded_keys=tuple(excluded_keys),
            request_id=request_id,
        )
        while True:
            claims = await self._log.transact(lambda tx: claim_caught_up(tx, order, self._policy))
            if claims is not None:
                return claims

    async def renew(
        self, consumer_id: str, claims: Iterable[ClaimRef], ttl_ms: int = DEFAULT_TTL_MS
    ) -> Kept:
        return await self._log.transact(
            lambda tx: renew(tx, self.name, consumer_id, claims, ttl_ms)
        )

    async def release(
        self, consumer_id: str, claims: Iterable[ClaimRef], reason: str | None = None
    ) -> Kept:
        return await self._log.transact(
            lambda tx: release(tx, self.name, consumer_id, claims, reason)
        )

    async def settle(self, consumer_id: str, settlements: Iterable[Settlement]) -> list[Settled]:
        return await self._log.transact(lambda tx: settle(tx, self.name, consumer_id, settlements))

    async def purge(self, purged_by: str, reason: str | None = None) -> int:
        """How many jobs were purged."""
        count, after = 0, 0
        while True:
            purged = await self._log.transact(
                partial(
                    purge_some, queue=self.name, purged_by=purged_by, reason=reason, after=after
                )
            )
            if purged.last is None:
                return count
            count, after = count + purged.count, purged.last

    async def pause(self, paused_by: str) -> None:
        await self._log.transact(lambda tx: pause(tx, self.name, paused_by))

    async def resume(self) -> bool:
        return await self._log.transact(lambda tx: resume(tx, self.name))

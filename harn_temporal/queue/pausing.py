"""A paused queue takes jobs and gives none; claims in flight go on."""

from __future__ import annotations

from harn_temporal.eventlog.log import Transaction
from harn_temporal.queue.names import checked_queue


def pause(tx: Transaction, queue: str, paused_by: str) -> None:
    tx.queues.set_pause(checked_queue(tx, queue), paused_by)


def resume(tx: Transaction, queue: str) -> bool:
    """Whether it was paused."""
    return tx.queues.lift_pause(checked_queue(tx, queue))

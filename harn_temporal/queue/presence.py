"""Whether the process that a consumer belongs to is still there."""

from __future__ import annotations

from harn_temporal.eventlog.log import Reader, Transaction
from harn_temporal.eventlog.topics import WORKER_QUEUES

CONFIRM_S = 15.0
GONE_MS = 60_000
"""A process that has not confirmed its consumer for so long is taken for gone."""


def confirm(tx: Transaction, consumer_id: str) -> None:
    """Call it every CONFIRM_S seconds, while the process is there."""
    cursor = tx.cursor(WORKER_QUEUES, consumer_id)
    tx.ack(WORKER_QUEUES, consumer_id, cursor + cursor % 2)


def withdraw(tx: Transaction, consumer_id: str) -> None:
    """Call it when the process ends in order: it is gone at once, until one confirms it again.

    A cursor only moves on. Where it is odd, the process has withdrawn.
    """
    tx.ack(WORKER_QUEUES, consumer_id, tx.cursor(WORKER_QUEUES, consumer_id) | 1)


def is_present(reader: Reader, consumer_id: str) -> bool:
    found = reader.consumer(WORKER_QUEUES, consumer_id)
    if found is None or found.cursor % 2:
        return False
    return reader.now_ms - found.updated_at_ms <= GONE_MS


def is_gone(reader: Reader, consumer_id: str) -> bool:
    """As not `is_present`, of a consumer that was confirmed once: a drain needs no process."""
    known = reader.consumer(WORKER_QUEUES, consumer_id) is not None
    return known and not is_present(reader, consumer_id)

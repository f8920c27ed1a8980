"""Whether the process that a consumer belongs to is still there."""

from __future__ import annotations

from harn_temporal.eventlog.log import Reader, Transaction
from harn_temporal.eventlog.topics import WORKER_QUEUES

CONFIRM_S = 15.0
GONE_MS = 60_000
"""A process that has not confirmed its consumer for so long is taken for gone."""


def confirm(tx: Transaction, consumer_id: str) -> None:
    """Call it every CONFIRM_S seconds, while the process is there."""
    tx.ack(WORKER_QUEUES, consumer_id, 0)


def is_present(reader: Reader, consumer_id: str) -> bool:
    found = reader.consumer(WORKER_QUEUES, consumer_id)
    return found is not None and reader.now_ms - found.updated_at_ms <= GONE_MS


def is_gone(reader: Reader, consumer_id: str) -> bool:
    """As not `is_present`, of a consumer that was confirmed once: a drain needs no process."""
    known = reader.consumer(WORKER_QUEUES, consumer_id) is not None
    return known and not is_present(reader, consumer_id)

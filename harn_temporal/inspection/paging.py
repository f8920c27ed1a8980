"""Whole topics, page by page, and the topics that tenants have of their own."""

from __future__ import annotations

from collections.abc import AsyncIterator

from harn_temporal.eventlog.log import EventLog, Record
from harn_temporal.eventlog.topics import TENANT_PREFIX, is_of

PAGE = 1000


async def records_of(log: EventLog, topic: str, after: int = 0) -> AsyncIterator[Record]:
    """The records of a topic strictly after the id `after`, in order."""
    while page := await log.read(topic, after, PAGE):
        for record in page:
            yield record
        after = page[-1].event_id


async def topics_like(log: EventLog, plain: str) -> list[str]:
    """The topic `plain` and the same topic of each tenant, where they have records."""
    heads = [*await log.topics(plain), *await log.topics(TENANT_PREFIX)]
    return [head.topic for head in heads if is_of(head.topic, plain)]

"""Records as they are appended, by anyone, on topics that exist and topics that come."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection

from harn_temporal.eventlog.log import EventLog, Reader, Record
from harn_temporal.eventlog.topics import is_topic
from harn_temporal.inspection.paging import PAGE

WAIT_SECONDS = 60.0


async def follow(log: EventLog, topics: Collection[str], last: int = 0) -> AsyncIterator[Record]:
    """The `last` records of each topic, then every record that is appended from now on.

    Without `topics`, all of them. Never ends by itself. Records of a topic come in order.
    """

    def heads(reader: Reader) -> dict[str, int]:
        return {
            head.topic: head.last_id
            for head in reader.topics()
            if (head.topic in topics if topics else is_topic(head.topic))
        }

    seen = {topic: max(0, head - last) for topic, head in (await log.query(heads)).items()}
    mark = 0
    while True:
        for topic, head in (await log.query(heads)).items():
            while seen.get(topic, 0) < head:
                page = await log.read(topic, seen.get(topic, 0), PAGE)
                if not page:
                    break
                for record in page:
                    yield record
                seen[topic] = page[-1].event_id
        # The mark is older than the look above: what was appended in between is not slept over.
        mark = await log.changed(mark, WAIT_SECONDS)

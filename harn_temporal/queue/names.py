"""Names of queues in a store: two of them must not share a topic."""

from __future__ import annotations

from harn_temporal.errors import UsageError
from harn_temporal.eventlog.log import Reader
from harn_temporal.eventlog.topics import queue_topic, safe_topic
from harn_temporal.queue.name_rules import name_problem


def checked_queue(reader: Reader, name: str) -> str:
    """The queue's part of a topic. Raises UsageError for a name that cannot be used."""
    problem = name_problem(name)
    if problem is not None:
        raise UsageError(problem)
    queue = safe_topic(name)
    other = next((each for each in reader.queues.names_of(queue) if each != name), None)
    if other is not None:
        raise UsageError(
            f"the queue {name!r} would share the topic {queue_topic(name)} with the queue "
            f"{other!r}; give it another name"
        )
    return queue

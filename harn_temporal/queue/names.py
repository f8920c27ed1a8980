"""Names of queues. Any text is one, unless its topics would be those of something else."""

from __future__ import annotations

from harn_temporal.canonical import clean_text
from harn_temporal.errors import UsageError
from harn_temporal.eventlog.log import Reader
from harn_temporal.eventlog.topics import is_reserved_queue, queue_topic, safe_topic


def name_problem(name: str) -> str | None:
    """What is wrong with the name of a queue, whatever other queues there are."""
    if not name.strip():
        return "a queue needs a name"
    if name != clean_text(name):
        return f"the queue name {name!r} holds half of a surrogate pair"
    if is_reserved_queue(name):
        return (
            f"the queue name {name!r} is taken by the log's own topics; use any but `queues` "
            "and those that end in .claims or .responses"
        )
    return None


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

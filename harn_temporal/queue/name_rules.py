"""What a queue may be called, whatever other queues there are."""

from __future__ import annotations

from harn_temporal.canonical import clean_text
from harn_temporal.eventlog.topics import is_reserved_queue


def name_problem(name: str) -> str | None:
    """What is wrong with the name of a queue; None where it can be one."""
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

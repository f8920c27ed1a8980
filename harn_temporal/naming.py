"""Names on the Temporal side: task queues and workflow ids.

An id is for people first: its parts can be read. A part that is long ends in a hash, so that an
id holds at most 200 characters, whatever a trigger or an event is called.
"""

from __future__ import annotations

import hashlib

from harn_temporal.errors import UsageError
from harn_temporal.eventlog.topics import safe_topic

ID_LIMIT = 200
JOB_PREFIX = "job/"
_HASH_LENGTH = 12


def shortened(text: str, limit: int) -> str:
    """`text` where it fits, else its beginning, a dash, and a hash over the whole of it."""
    if len(text) <= limit:
        return text
    digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:_HASH_LENGTH]
    return f"{text[: limit - _HASH_LENGTH - 1]}-{digest}"


def task_queue(store_id: str, package: str) -> str:
    """Where the workflows and handlers of a package run."""
    return f"harn/{store_id}/{shortened(package, 100)}"


def control_queue(store_id: str, package: str) -> str:
    """Where the pump, selection and settlement run: they never wait behind handlers."""
    return f"{task_queue(store_id, package)}/control"


def pump_workflow_id(store_id: str, package: str) -> str:
    return f"pump/{store_id}/{shortened(package, 100)}"


def pump_consumer(package: str) -> str:
    """The consumer id of a package's pump.

    Its cursor on the envelopes is moved or confirmed at least every 15 s while a pump runs.
    """
    return f"harn-temporal.{safe_topic(package)}"


def cancel_consumer(package: str) -> str:
    """The consumer id under which a package's workers act on requests to cancel."""
    return f"{pump_consumer(package)}.cancel"


def dispatch_id_prefix(package: str) -> str:
    """What the workflow ids of a package's dispatches begin with."""
    return f"dispatch/{shortened(package, 50)}/"


def consumer_queue(store_id: str, package: str, consumer_id: str) -> str:
    """Where the workflows and handlers of one consumer run: in its own process.

    On the package's own queue, whoever is killed would take along what other consumers hold.
    Raises UsageError for an id that is too long: the queue tells whose it is.
    """
    if len(consumer_id) > ID_LIMIT:
        raise UsageError(
            f"a consumer id has at most {ID_LIMIT} characters, and this one {len(consumer_id)}: "
            f"{consumer_id[:40]}…"
        )
    return f"{consumer_queue_prefix(store_id, package)}{consumer_id}"


def consumer_queue_prefix(store_id: str, package: str) -> str:
    """What the task queues of a package's consumers begin with."""
    return f"{task_queue(store_id, package)}/consumer/"


def consume_queue(tasks: str) -> str:
    """Where jobs are selected and settled for the consumers whose task queue is `tasks`.

    It is apart from the pump's, which only workers that pump look at.
    """
    return f"{tasks}/control/queues"


def consumer_workflow_id(store_id: str, package: str, queue: str, consumer_id: str) -> str:
    return (
        f"consume/{store_id}/{shortened(package, 40)}/{shortened(queue, 40)}/"
        f"{shortened(consumer_id, 70)}"
    )


def job_workflow_id(queue: str, job_event_id: int, claim_id: str) -> str:
    """Each claim of a job is a dispatch of its own."""
    return f"{JOB_PREFIX}{shortened(queue, 100)}/{job_event_id}/{claim_id}"


def job_of(workflow_id: str) -> str | None:
    """What the dispatches of one job have in common; None for one of no job."""
    return workflow_id.rpartition("/")[0] if workflow_id.startswith(JOB_PREFIX) else None


def dispatch_workflow_id(
    package: str, trigger_id: str, event_id: str, replay: int | None = None
) -> str:
    tail = "" if replay is None else f"/replay/{replay}"
    return (
        f"{dispatch_id_prefix(package)}{shortened(trigger_id, 60)}/{shortened(event_id, 60)}{tail}"
    )

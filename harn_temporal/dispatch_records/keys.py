"""The idempotency keys of a dispatch's batches: who writes first, wins."""

from __future__ import annotations

import re

_STEP = re.compile(r"/(?:trigger|gates|\d+/end|[^/]+/\d+/(?:start|pending))(?:/\d+)?$")


def start_key(workflow_id: str, run_id: str, attempt: int) -> str:
    """Of `started`: once in each run of the workflow."""
    return f"{workflow_id}/{run_id}/{attempt}/start"


def pending_key(workflow_id: str, run_id: str, attempt: int) -> str:
    """Of `pending`: once in each run of the workflow."""
    return f"{workflow_id}/{run_id}/{attempt}/pending"


def end_key(workflow_id: str, attempt: int) -> str:
    """Of `ended` and `cancelled`: an attempt has one outcome, whoever reports it."""
    return f"{workflow_id}/{attempt}/end"


def trigger_key(workflow_id: str) -> str:
    """Of `predicate_evaluated`, with `skipped` behind it where the answer was no."""
    return f"{workflow_id}/trigger"


def flow_key(workflow_id: str) -> str:
    """Of `held_back`: the end that a gate made."""
    return f"{workflow_id}/gates"


def workflow_of(key: str) -> str | None:
    """The workflow that a key above belongs to, also with a place in its batch behind it.

    None for a key of another kind.
    """
    step = _STEP.search(key)
    return key[: step.start()] if step else None

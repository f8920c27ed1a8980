"""Why the running activity was interrupted. Temporal tells it all as one CancelledError."""

from __future__ import annotations

from enum import Enum

from temporalio import activity


class Interruption(Enum):
    CANCELLED = "the dispatch was cancelled"
    SHUTDOWN = "the worker stops and its grace period is over"
    GONE = "the service gave the activity up: timed out, or its workflow is closed"
    IGNORED = "paused or reset by an operator, which concerns only what is not running yet"


def interruption() -> Interruption:
    """To be asked where a CancelledError has just been caught in an activity."""
    details = activity.cancellation_details()
    if details is None:  # the SDK shuts down without having told a reason
        return Interruption.SHUTDOWN
    if details.worker_shutdown:
        return Interruption.SHUTDOWN
    if details.cancel_requested:
        return Interruption.CANCELLED
    if details.paused or details.reset:
        return Interruption.IGNORED
    return Interruption.GONE

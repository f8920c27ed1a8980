"""What became of the activity execution of an attempt that did not return its outcome."""

from __future__ import annotations

from dataclasses import dataclass

from temporalio.exceptions import (
    ActivityError,
    ApplicationError,
    CancelledError,
    TimeoutType,
)
from temporalio.exceptions import TimeoutError as TemporalTimeoutError

from harn_temporal.contracts import AttemptOutcome, AttemptStatus
from harn_temporal.workflows.activity_types import (
    ATTEMPT_FAILED,
    PERMITS_LOST,
    STORE_UNAVAILABLE,
    WORKER_SHUTDOWN,
)


@dataclass(frozen=True)
class Ended:
    """The attempt ended and its records are written."""

    outcome: AttemptOutcome


@dataclass(frozen=True)
class CutShort:
    """The worker was told to stop. This was no attempt: it is run again at once."""


@dataclass(frozen=True)
class PermitsLost:
    """Others hold its permits by now. This was no attempt: it goes through the gates again."""

    outcome: None = None


@dataclass(frozen=True)
class StoreDown:
    """The EventLog could not be reached. This was no attempt: it is run again after a pause."""


@dataclass(frozen=True)
class Lost:
    """Nobody wrote how the attempt ended; the workflow has it recorded."""

    status: AttemptStatus
    error: str


Fate = Ended | CutShort | PermitsLost | StoreDown | Lost


def fate_of(error: ActivityError) -> Fate:
    """Classify by the types of the error and its cause, never by their words."""
    fate: Fate
    match error.cause:
        case CancelledError():
            fate = Lost("cancelled", "cancelled")
        case TemporalTimeoutError(type=TimeoutType.HEARTBEAT):
            fate = Lost("failed", "the worker that ran this attempt stopped answering")
        case TemporalTimeoutError():
            fate = Lost("timeout", "the attempt did not end within its time")
        case ApplicationError(type=type_, details=[detail, *_]) if type_ == ATTEMPT_FAILED:
            fate = Ended(AttemptOutcome.model_validate(detail))
        case ApplicationError(type=type_) if type_ == WORKER_SHUTDOWN:
            fate = CutShort()
        case ApplicationError(type=type_) if type_ == PERMITS_LOST:
            fate = PermitsLost()
        case ApplicationError(type=type_) if type_ == STORE_UNAVAILABLE:
            fate = StoreDown()
        case ApplicationError() as cause:
            fate = Lost("failed", f"{cause.type or 'error'}: {cause.message}")
        case cause:
            fate = Lost("failed", str(cause or error))
    return fate

"""The activities a workflow may call: a name, an input and an output, and no implementation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from harn_temporal.consume_contracts import (
    ChildrenToCheck,
    EndedChildren,
    QueueNews,
    QueueWatch,
    Renewal,
    Renewed,
    Selected,
    Selection,
)
from harn_temporal.contracts import (
    AttemptOutcome,
    AttemptRequest,
    CancelledDispatch,
    DispatchEnd,
    FollowedTask,
    LostAttempt,
    PredicateRequest,
    PredicateVerdict,
    PumpReport,
    PumpRequest,
)
from harn_temporal.gate_contracts import GateAnswer, GateRequest

InputT = TypeVar("InputT")
OutputT = TypeVar("OutputT")


@dataclass(frozen=True)
class ActivityType(Generic[InputT, OutputT]):
    name: str
    input: type[InputT]
    output: type[OutputT]


EVALUATE_WHEN = ActivityType("evaluate_when", PredicateRequest, PredicateVerdict)
"""Evaluates the binding's predicate and appends what came of it, the skip included."""

PASS_GATES = ActivityType("pass_gates", GateRequest, GateAnswer)
"""Asks the gates of a binding, and appends what they say, the skip included."""

RUN_ATTEMPT = ActivityType("run_attempt", AttemptRequest, AttemptOutcome)
"""Appends the start, calls the handler, appends the outcome. Raises ATTEMPT_FAILED with the
outcome as its detail where the handler failed, so that the attempt shows red in the Web UI."""

POLL_A2A_TASK = ActivityType("poll_a2a_task", FollowedTask, AttemptOutcome)
"""Asks an agent about the task that an attempt goes on as; appends the outcome once it ended.
Raises ATTEMPT_FAILED as RUN_ATTEMPT does."""

CANCEL_A2A_TASK = ActivityType("cancel_a2a_task", FollowedTask, type(None))
"""Asks an agent to cancel a task. Appends nothing."""

RECORD_LOST_ATTEMPT = ActivityType("record_lost_attempt", LostAttempt, AttemptOutcome)
"""Appends the outcome of an attempt whose worker cannot, and adopts one that was appended."""

RECORD_CANCELLED = ActivityType("record_cancelled", CancelledDispatch, DispatchEnd)
"""Appends the end of a dispatch that was cancelled while no attempt ran, and gives its end."""

RUN_PUMP = ActivityType("run_pump", PumpRequest, PumpReport)
"""Starts a dispatch for each envelope of its package, until its lifetime is over."""

SELECT_JOBS = ActivityType("select_jobs", Selection, Selected)
"""Settles finished jobs of a worker queue and claims others, in one transaction."""

RENEW_CLAIMS = ActivityType("renew_claims", Renewal, Renewed)
"""Renews all claims of a consumer."""

WATCH_QUEUE = ActivityType("watch_queue", QueueWatch, QueueNews)
"""Waits until a worker queue may have something to claim. Appends nothing."""

CHECK_CHILDREN = ActivityType("check_children", ChildrenToCheck, EndedChildren)
"""Asks Temporal which of a consumer's children have closed."""

ATTEMPT_FAILED = "AttemptFailed"
"""The error type of an attempt that ended without success; its one detail is an AttemptOutcome."""

PERMITS_LOST = "PermitsLost"
"""The error type of an attempt that did not begin, since its permits had expired and others
hold them now. Nothing has happened yet."""

STORE_UNAVAILABLE = "StoreUnavailable"
"""The error type of a step that could not reach the EventLog. Nothing has happened yet."""

WORKER_SHUTDOWN = "WorkerShutdown"
"""The error type the SDK gives to an activity that was cut short by an orderly shutdown."""

AGENT_UNAVAILABLE = "AgentUnavailable"
"""The error type of a request to cancel a task that the agent could not take just now."""

QUEUE_REFUSED = "QueueRefused"
"""The error type of a worker queue whose name cannot be used."""

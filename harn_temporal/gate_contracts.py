"""What a dispatch and the activity that takes it through the gates of its binding say."""

from __future__ import annotations

from harn_temporal.contracts import DispatchEnd, DispatchRequest, EventAddress, Message
from harn_temporal.gates.decisions import Permit, Skip, Wait

ASK_GATES_AGAIN = "ask_gates_again"
"""The signal to a dispatch that waits at a gate."""


class GateRequest(Message):
    """A dispatch at the gates behind the first `passed`."""

    dispatch: DispatchRequest
    dispatch_id: str
    permit_id: str
    """A UUID of this question's; asked again by the same dispatch it may differ."""
    passed: int = 0
    attempts: int = 0
    """How many attempts had ended by then."""
    arrived_at_ms: int | None = None
    """When it first asked for a permit that it gave back; None where it asks for the first time."""
    parked: bool = False
    """Whether it is recorded already that it waits."""


class GateAnswer(Message):
    """How far it came: `wait` and `skip` say what stopped it, with neither it may go on.

    With `ended` the dispatch has ended, or has just been found cancelled; nothing else counts.
    """

    passed: int = 0
    wait: Wait | None = None
    skip: Skip | None = None
    permits: tuple[Permit, ...] = ()
    batch: EventAddress | None = None
    ended: DispatchEnd | None = None

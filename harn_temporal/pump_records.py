"""The records of a pump, all in `orchestrator.lifecycle`. Nothing here reads or writes anything."""

from __future__ import annotations

from typing import Any

from harn_temporal import headers
from harn_temporal.contracts import DispatchRequest, EventAddress
from harn_temporal.eventlog import topics
from harn_temporal.eventlog.dispatches import ADMITTED, COMPLETED, LOST, PARKED, StoredDispatch
from harn_temporal.eventlog.records import Append


class PumpRecords:
    """Records of the pump of `package`, all of one moment."""

    def __init__(self, package: str, *, max_outstanding: int, now_ms: int) -> None:
        self._package = package
        self._max_outstanding = max_outstanding
        self._now_ms = now_ms

    def received(self, place: EventAddress, *, outstanding: int) -> Append:
        found: dict[str, Any] = {
            "outstanding": outstanding,
            "max_outstanding": self._max_outstanding,
        }
        return self._record("pump_received", place, **found)

    def eligible(self, request: DispatchRequest, workflow_id: str) -> Append:
        return self._record(
            "pump_eligible", request.address, workflow_id=workflow_id, **_target(request)
        )

    def admitted(
        self, request: DispatchRequest, workflow_id: str, *, outstanding_after: int
    ) -> Append:
        """The record by which a dispatch counts as outstanding."""
        return self._record(
            ADMITTED,
            request.address,
            workflow_id=workflow_id,
            **_target(request),
            outstanding_after_admit=outstanding_after,
            max_outstanding=self._max_outstanding,
        )

    def dispatch_started(self, request: DispatchRequest, workflow_id: str) -> Append:
        return self._record(
            "pump_dispatch_started", request.address, workflow_id=workflow_id, **_target(request)
        )

    def dispatch_completed(
        self, place: EventAddress, workflow_id: str | None, *, status: str, error: str | None
    ) -> Append:
        """`status` is that of the DispatchOutcome; without a workflow, no dispatch came about."""
        return self._record(COMPLETED, place, workflow_id=workflow_id, status=status, error=error)

    def acked(self, place: EventAddress) -> Append:
        return self._record("pump_acked", place, cursor=place.event_id)

    def lost(self, dispatch: StoredDispatch) -> Append:
        """Says that Temporal does not know its workflow: until recovered it is not under way."""
        place = EventAddress(topic=dispatch.envelope_topic, event_id=dispatch.envelope_id)
        return self._record(LOST, place, workflow_id=dispatch.workflow_id)

    def stranded(self, count: int) -> Append:
        return self._append("startup_stranded_envelopes", {"count": count}, None)

    def _record(
        self, kind: str, place: EventAddress, *, workflow_id: str | None = None, **found: Any
    ) -> Append:
        payload = {"topic": place.topic, "event_log_id": place.event_id, **found}
        return self._append(kind, payload, workflow_id)

    def _append(self, kind: str, payload: dict[str, Any], workflow_id: str | None) -> Append:
        marks = {headers.PACKAGE: self._package}
        if workflow_id is not None:
            marks[headers.WORKFLOW_ID] = workflow_id
        return Append(topics.ORCHESTRATOR_LIFECYCLE, kind, payload, marks, self._now_ms)


def parked(workflow_id: str, reason: str, *, now_ms: int, attempt: int | None = None) -> Append:
    """Says that a dispatch waits before the end of its first attempt: in a gate, for a task.

    From then on it takes no place in its pump. Append it in the transaction that parks it.
    `attempt` is the one that goes on as a task.
    """
    payload: dict[str, Any] = {"workflow_id": workflow_id, "reason": reason}
    if attempt is not None:
        payload["attempt"] = attempt
    return Append(
        topics.ORCHESTRATOR_LIFECYCLE,
        PARKED,
        payload,
        {headers.WORKFLOW_ID: workflow_id},
        now_ms,
    )


def _target(request: DispatchRequest) -> dict[str, Any]:
    return {
        "trigger_id": request.binding.trigger_id,
        "binding_version": request.binding.version or None,
        "trigger_event_id": request.event_id,
    }

"""What the records of a dispatch say, read back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, cast, get_args

from harn_temporal import headers
from harn_temporal.contracts import AttemptOutcome, AttemptStatus, DispatchStatus, ErrorClass
from harn_temporal.errors import StoreError
from harn_temporal.eventlog.records import Record

_ENDS = {"dispatch_succeeded", "dispatch_failed", "dispatch_waiting"}


def outcome_of(records: Sequence[Record]) -> AttemptOutcome:
    """The outcome of the attempt whose batch `ended` or `cancelled` made.

    Raises StoreError where the records are no such batch.
    """
    outbox = _one(records, _ENDS)
    if outbox is None:
        kinds = ", ".join(f"{record.kind} ({record.topic})" for record in records) or "none"
        raise StoreError(f"no outcome of an attempt is among the records found: {kinds}")
    payload = outbox.payload
    final = outbox.headers.get(headers.OUTCOME)
    recorded = _one(records, {"attempt_recorded"})
    retry = _one(records, {"retry_scheduled"})
    # `cancelled` and `refused` write no attempt: their dispatch ended before one began.
    unbegun = "failed" if final == "dlq" else "cancelled"
    status = unbegun if recorded is None else recorded.payload["outcome"]
    return AttemptOutcome(
        attempt=payload["attempt"],
        status=cast("AttemptStatus", _known(AttemptStatus, status, outbox)),
        result=payload.get("result"),
        error=payload.get("error", payload.get("message")),
        error_class=cast(
            "ErrorClass | None",
            _known(ErrorClass, outbox.headers.get(headers.ERROR_CLASS), outbox),
        ),
        retry_in_ms=None if retry is None else retry.payload["delay_ms"],
        final=cast("DispatchStatus | None", _known(DispatchStatus, final, outbox)),
    )


def attempt_history(
    records: Iterable[Record], *, binding_key: str, event_id: str, before: int
) -> list[dict[str, Any]]:
    """The `attempt_recorded` payloads of a dispatch's attempts before `before`, in order.

    Where an attempt was recorded twice, the first one counts.
    """
    found: dict[int, dict[str, Any]] = {}
    for record in records:
        if record.kind != "attempt_recorded":
            continue
        payload = record.payload
        if (payload["binding_key"], payload["event_id"]) != (binding_key, event_id):
            continue
        if payload["attempt"] < before:
            found.setdefault(payload["attempt"], payload)
    return [found[attempt] for attempt in sorted(found)]


def _one(records: Iterable[Record], kinds: set[str]) -> Record | None:
    return next((record for record in records if record.kind in kinds), None)


def _known(values: Any, value: str | None, record: Record) -> str | None:
    if value is None or value in get_args(values):
        return value
    raise StoreError(
        f"record {record.event_id} of {record.topic} says {value!r} where one of "
        f"{', '.join(get_args(values))} is expected; was it written by a newer version?"
    )

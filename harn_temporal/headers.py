"""Header names on records of the EventLog. Harn's are as it writes them, ours carry our prefix."""

from __future__ import annotations

from collections.abc import Mapping

ACCEPTED_AT_MS = "harn_trigger_accepted_at_ms"
QUEUE_APPENDED_AT_MS = "harn_trigger_queue_appended_at_ms"
TRACEPARENT = "traceparent"
AVAILABLE_AT_MS = "available_at_ms"
"""On a job of a worker queue: the time before which it is not claimed, in decimal."""

TENANT_ID = "tenant_id"
"""Harn's, on the records of a dispatch; ours on dedupe claims, so that tenants have their own."""

PACKAGE = "harn_temporal.package"
"""On envelopes and dedupe claims: the package whose pump dispatches them."""

REPLAY_OF = "replay_of_event_id"
"""Harn's, on the records of a replay; on its envelope too, beside ours."""

REPLAY = "harn_temporal.replay"
"""On the envelope of a replay: which replay of its event and trigger it is, counted from 1."""

IDEMPOTENCY_KEY = "harn_temporal.idempotency_key"
"""On every record appended with a key: the key, and the record's place in its batch."""

WORKFLOW_ID = "harn_temporal.workflow_id"
"""On the outbox records of a dispatch: the workflow that wrote them."""

OUTCOME = "harn_temporal.outcome"
"""On the one outbox record that ends a dispatch: its final status."""

ERROR_CLASS = "harn_temporal.error_class"
"""On the outbox record of an attempt that failed: its error class."""

EVENT_ADDRESS = "harn_temporal.event"
"""On `dispatch_started`: where the event lies in the log, as `<topic>/<event id>`."""

BATCH = "harn_temporal.batch"
"""On `dispatch_started`: where the members of the batch are named that it is for, likewise."""

READMITTED_FROM = "harn_temporal.readmitted_from"
"""On an envelope that `recover` appended: the address of the stranded one, in the same form."""

DLQ_REASON = "harn_temporal.dlq_reason"
"""On `dlq_moved`: the reason that `DlqMoved` gives, where it is not that its retries ran out."""

HOLDER = "holder"
PERMIT_ID = "permit_id"
EXPIRES_AT_MS = "expires_at_ms"
"""On gate records: who holds or waits, the permit, and until when it holds, in decimal."""

GATE_ID = "harn_temporal.gate_id"
"""On gate records of ours: what tells a gate from all others, whatever their names and topics."""

_DIGITS = 9

PROVENANCE_SCHEMA = "harn.provenance.schema"
PROVENANCE_PREV_HASH = "harn.provenance.prev_hash"
PROVENANCE_RECORD_HASH = "harn.provenance.record_hash"


def replay_number(headers: Mapping[str, str]) -> int | None:
    """Which replay an envelope is, None for none. Raises ValueError for what is no number."""
    written = headers.get(REPLAY)
    if written is None:
        return None
    if not (written.isascii() and written.isdecimal() and 0 < len(written) <= _DIGITS):
        raise ValueError(f"no number in the header {REPLAY}")
    return int(written)

"""Header names on records of the EventLog. Harn's are as it writes them, ours carry our prefix."""

from __future__ import annotations

ACCEPTED_AT_MS = "harn_trigger_accepted_at_ms"
QUEUE_APPENDED_AT_MS = "harn_trigger_queue_appended_at_ms"
TRACEPARENT = "traceparent"
AVAILABLE_AT_MS = "available_at_ms"
"""On a job of a worker queue: the time before which it is not claimed, in decimal."""

TENANT_ID = "tenant_id"
"""Harn's, on the records of a dispatch; ours on dedupe claims, so that tenants have their own."""

PACKAGE = "harn_temporal.package"
"""On envelopes and dedupe claims: the package whose pump dispatches them."""

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

READMITTED_FROM = "harn_temporal.readmitted_from"
"""On an envelope that `recover` appended: the address of the stranded one, in the same form."""

PROVENANCE_SCHEMA = "harn.provenance.schema"
PROVENANCE_PREV_HASH = "harn.provenance.prev_hash"
PROVENANCE_RECORD_HASH = "harn.provenance.record_hash"

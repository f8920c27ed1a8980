"""From an envelope of the inbox to the request of its dispatch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from harn_temporal.bindings import Binding
from harn_temporal.contracts import INLINE_EVENT_LIMIT, DispatchRequest
from harn_temporal.errors import StoreError
from harn_temporal.event_address import address_of, event_in
from harn_temporal.eventlog.log import Record


def binding_named(record: Record) -> tuple[str, int] | None:
    """The trigger id and version that an envelope was accepted under, as far as it says."""
    try:
        payload: Any = record.payload
    except StoreError:
        return None
    if not isinstance(payload, dict):
        return None
    trigger_id, version = payload.get("trigger_id"), payload.get("binding_version")
    if isinstance(trigger_id, str) and isinstance(version, int):
        return trigger_id, version
    return None


def dispatch_request(
    record: Record,
    *,
    store_id: str,
    package: str,
    current: Mapping[str, Binding],
    stored: Mapping[str, Any] | None,
    search_attributes: bool,
    heartbeat_timeout_ms: int,
) -> DispatchRequest:
    """The request for an `event_ingested` record of `package`.

    It carries the binding in the version that the envelope was accepted under, whose definition
    is `stored`; where there is none, the `current` one of that trigger id. The event goes along
    as long as it is small. Raises StoreError where the envelope holds no event, or no binding can
    be found for it.
    """
    event = event_in(record)
    binding = _binding(record, package, current, stored)
    return DispatchRequest(
        store_id=store_id,
        binding=binding,
        event_id=event.id,
        trace_id=event.trace_id,
        tenant_id=event.tenant_id,
        address=address_of(record),
        event=event if len(record.raw) <= INLINE_EVENT_LIMIT else None,
        search_attributes=search_attributes,
        heartbeat_timeout_ms=heartbeat_timeout_ms,
    )


def _binding(
    record: Record,
    package: str,
    current: Mapping[str, Binding],
    stored: Mapping[str, Any] | None,
) -> Binding:
    payload: Any = record.payload
    trigger_id, version = payload.get("trigger_id"), payload.get("binding_version")
    place = f"envelope {record.event_id} of topic {record.topic}"
    if stored is not None and stored.get("package") == package:
        try:
            return Binding.model_validate({**stored, "version": version})
        except ValidationError as error:
            raise StoreError(
                f"{place} was accepted by {trigger_id}@v{version}, whose stored definition "
                f"cannot be read: {error}"
            ) from error
    if isinstance(trigger_id, str) and trigger_id in current:
        return current[trigger_id]
    raise StoreError(
        f"{place} is for trigger {trigger_id!r}, which neither the store nor the manifest of "
        f"package {package} knows; add the trigger again, or leave the envelope"
    )

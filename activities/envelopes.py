"""From an envelope of the inbox to the requests of its dispatches."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pydantic import ValidationError

from harn_temporal import headers
from harn_temporal.bindings import Binding
from harn_temporal.contracts import INLINE_EVENT_LIMIT, DispatchRequest
from harn_temporal.errors import ExpressionError, StoreError
from harn_temporal.event_address import address_of, event_in
from harn_temporal.eventlog.log import Record
from harn_temporal.events import TriggerEvent
from harn_temporal.expressions import JmesExpression, compile_jmespath, is_true

logger = logging.getLogger("harn_temporal.pump")

Definitions = Callable[[str, int], Mapping[str, Any] | None]
"""Gives the stored definition of a trigger id and version; None where there is none."""

KIND = "event_ingested"


@dataclass(frozen=True, slots=True)
class _Identity:
    event_id: str
    trace_id: str
    tenant_id: str | None
    event: TriggerEvent | None
    """None where it is too large for a workflow to carry."""


class Envelopes:
    """`current` holds the manifest's bindings of `package`, by trigger id.

    With `adopt_foreign`, envelopes that no package of ours marked are its own as well.
    """

    def __init__(
        self,
        *,
        store_id: str,
        package: str,
        current: Mapping[str, Binding],
        search_attributes: bool,
        heartbeat_timeout_ms: int,
        adopt_foreign: bool = False,
    ) -> None:
        self.package = package
        self._store_id = store_id
        self._current = current
        self._search_attributes = search_attributes
        self._heartbeat_timeout_ms = heartbeat_timeout_ms
        self._adopt_foreign = adopt_foreign

    def concerns(self, record: Record) -> bool:
        """Whether `record` is an envelope that this package's pump has to look into."""
        if record.kind != KIND:
            return False
        marked = record.headers.get(headers.PACKAGE)
        return self._adopt_foreign if marked is None else marked == self.package

    def requests(self, record: Record, definitions: Definitions) -> list[DispatchRequest]:
        """The dispatches that an envelope asks for, which `concerns` this package.

        One of ours gives one, in the version that it was accepted under; where the store does not
        know that, in the current one. An adopted one gives one for the binding that it names or,
        naming none, one for each binding that it matches; none where that is none of ours.
        Raises StoreError where the envelope holds no event, or no binding of it is known.
        """
        if headers.PACKAGE in record.headers:
            binding = self._own_binding(record, definitions)
            return [self._request(record, binding, _identity(record))]
        event = event_in(record)
        identity = _Identity(event.id, event.trace_id, event.tenant_id, _small(record, event))
        return [
            self._request(record, binding, identity) for binding in self._adopting(record, event)
        ]

    def _request(self, record: Record, binding: Binding, identity: _Identity) -> DispatchRequest:
        try:
            replay = headers.replay_number(record.headers)
        except ValueError as error:
            raise StoreError(f"{_place(record)} has {error}") from error
        return DispatchRequest(
            store_id=self._store_id,
            binding=binding,
            event_id=identity.event_id,
            trace_id=identity.trace_id,
            tenant_id=identity.tenant_id,
            address=address_of(record),
            event=identity.event,
            replay_of_event_id=record.headers.get(headers.REPLAY_OF),
            replay=replay,
            search_attributes=self._search_attributes,
            heartbeat_timeout_ms=self._heartbeat_timeout_ms,
            traceparent=record.headers.get(headers.TRACEPARENT),
        )

    def _own_binding(self, record: Record, definitions: Definitions) -> Binding:
        trigger_id, version = binding_named(record)
        stored = None
        if trigger_id is not None and version is not None:
            stored = definitions(trigger_id, version)
        if stored is not None and stored.get("package") == self.package:
            try:
                return Binding.model_validate({**stored, "version": version})
            except ValidationError as error:
                raise StoreError(
                    f"{_place(record)} was accepted by {trigger_id}@v{version}, whose stored "
                    f"definition cannot be read: {error}"
                ) from error
        if trigger_id is not None and trigger_id in self._current:
            return self._current[trigger_id]
        raise StoreError(
            f"{_place(record)} is for trigger {trigger_id!r}, which neither the store nor the "
            f"manifest of package {self.package} knows; add the trigger again, then run "
            "`harn-temporal recover`"
        )

    def _adopting(self, record: Record, event: TriggerEvent) -> list[Binding]:
        payload: Any = record.payload
        named = payload.get("trigger_id") if isinstance(payload, dict) else None
        if isinstance(named, str):
            return [self._current[named]] if named in self._current else []
        scope = {"event": event.to_json()}
        return [
            binding
            for binding in self._current.values()
            if binding.matches(event.provider, event.kind) and _passes(binding, scope, event)
        ]


def binding_named(record: Record) -> tuple[str | None, int | None]:
    """The trigger id and version that one of our envelopes was accepted under.

    Its headers say so; a payload that may be large is looked into only where they do not.
    """
    trigger_id = record.headers.get("trigger_id")
    _, mark, written = record.headers.get("binding_key", "").rpartition("@v")
    if trigger_id is not None and mark and written.isascii() and written.isdecimal():
        return trigger_id, int(written)
    payload: Any = record.payload
    if not isinstance(payload, dict):
        return None, None
    found, version = payload.get("trigger_id"), payload.get("binding_version")
    return (
        found if isinstance(found, str) else None,
        version if isinstance(version, int) else None,
    )


def _identity(record: Record) -> _Identity:
    """Who the event is: of a large one by the headers, which ingestion wrote from it."""
    event_id, trace_id = record.headers.get("event_id"), record.headers.get("trace_id")
    if len(record.raw) > INLINE_EVENT_LIMIT and event_id is not None and trace_id is not None:
        return _Identity(event_id, trace_id, record.headers.get("tenant_id"), None)
    event = event_in(record)
    return _Identity(event.id, event.trace_id, event.tenant_id, _small(record, event))


def _small(record: Record, event: TriggerEvent) -> TriggerEvent | None:
    return event if len(record.raw) <= INLINE_EVENT_LIMIT else None


def _passes(binding: Binding, scope: dict[str, Any], event: TriggerEvent) -> bool:
    if binding.filter is None:
        return True
    try:
        return is_true(_compiled(binding.filter).evaluate(scope))
    except ExpressionError as error:
        logger.warning(
            "filter_failed",
            extra={"trigger_id": binding.trigger_id, "event_id": event.id, "error": str(error)},
        )
        return False


@lru_cache(maxsize=1024)
def _compiled(source: str) -> JmesExpression:
    return compile_jmespath(source)


def _place(record: Record) -> str:
    return f"envelope {record.event_id} of topic {record.topic}"

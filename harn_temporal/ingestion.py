"""Ingestion: from an event to one durable envelope for each binding it is meant for.

It needs no Temporal. The claim of an event's dedupe key and its envelope are one transaction, so
that two who ingest the same delivery at once leave one envelope; the pump of the package takes
it from there.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from harn_temporal import headers
from harn_temporal.bindings import Binding
from harn_temporal.canonical import clean, clean_text, encode
from harn_temporal.contracts import EventAddress
from harn_temporal.dedupe_figures import count_dropped
from harn_temporal.envelope_records import event_records
from harn_temporal.errors import EventError, ExpressionError, NotFoundError
from harn_temporal.event_address import address_of
from harn_temporal.eventlog import topics
from harn_temporal.eventlog.log import EventLog, Transaction
from harn_temporal.eventlog.records import Append
from harn_temporal.events import TriggerEvent
from harn_temporal.expressions import JmesExpression, compile_jmespath, is_true
from harn_temporal.naming import dispatch_workflow_id
from harn_temporal.telemetry import tracing
from harn_temporal.telemetry.dispatch_spans import ingest_span

PAYLOAD_LIMIT = 10 * 1024 * 1024
"""Bytes of JSON that an event's payload as it came (`provider_payload.raw`) may have."""

EVENT_LIMIT = 4 * PAYLOAD_LIMIT
"""Bytes of JSON for the whole event, where typed copies and the raw body lie beside the payload."""

_DAY_MS = 24 * 60 * 60 * 1000

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Ingested:
    """What became of an event for one binding.

    `accepted` has an address, where its envelope is durable. `duplicate` means that a live claim
    holds the dedupe key, `filtered` that the binding's filter said no; neither appended anything.
    `warning` says which expression failed for this event, and what was done instead.
    """

    trigger_id: str
    binding_key: str
    status: Literal["accepted", "duplicate", "filtered"]
    event_id: str
    workflow_id: str
    address: EventAddress | None = None
    warning: str | None = None


@dataclass(frozen=True, slots=True)
class _Delivery:
    event: TriggerEvent
    event_json: dict[str, Any]
    package: str


@dataclass(frozen=True, slots=True)
class _Candidate:
    binding: Binding
    dedupe_key: str
    filtered: bool = False
    warning: str | None = None


async def ingest(
    log: EventLog,
    bindings: Iterable[Binding],
    event: TriggerEvent,
    *,
    package: str,
    only: str | None = None,
) -> list[Ingested]:
    """Append an envelope of `event` for each binding that it matches, in the bindings' order.

    With `only`, the id of a trigger, the event goes to that binding whatever its `match` says;
    its filter and its dedupe key hold all the same. Each binding is a transaction of its own.

    A filter that fails for this event counts as no, as a predicate that raises does: with a
    warning, or as EventError with `only`, where nobody else could take the event. A dedupe key
    that fails, or gives null or an empty text, is the event's own: it is not lost.

    Raises EventError for an event that is too large, NotFoundError where `only` names no trigger.
    """
    chosen = _chosen(bindings, event, only)
    with ingest_span(event):
        # Expressions and the measure of a large event take long enough to hold up the event loop.
        event_json, candidates = await asyncio.to_thread(_prepare, chosen, event, only)
        delivery = _Delivery(event, event_json, package)
        return [await _ingest_for(log, delivery, candidate) for candidate in candidates]


async def _ingest_for(log: EventLog, delivery: _Delivery, candidate: _Candidate) -> Ingested:
    binding = candidate.binding
    if candidate.warning is not None:
        _logger.warning("expression_failed", extra={"problem": candidate.warning})
    status: Literal["accepted", "duplicate", "filtered"] = "filtered"
    address = None
    if not candidate.filtered:
        with tracing.span(
            tracing.APPEND, kind="producer", attributes={"harn.trigger_id": binding.trigger_id}
        ) as span:
            address = await _claim_and_append(log, delivery, candidate, span.traceparent)
            status = "duplicate" if address is None else "accepted"
            span.set({"harn.status": status})
            _logger.info(
                "event_ingested",
                extra={
                    "event_id": delivery.event.id,
                    "trace_id": delivery.event.trace_id,
                    "trigger_id": binding.trigger_id,
                    "status": status,
                },
            )
        if address is None:
            count_dropped(binding.trigger_id, "inbox_duplicate")
    return Ingested(
        trigger_id=binding.trigger_id,
        binding_key=binding.binding_key,
        status=status,
        event_id=delivery.event.id,
        workflow_id=dispatch_workflow_id(delivery.package, binding.trigger_id, delivery.event.id),
        address=address,
        warning=candidate.warning,
    )


def _chosen(
    bindings: Iterable[Binding], event: TriggerEvent, only: str | None
) -> Sequence[Binding]:
    known = tuple(bindings)
    if only is None:
        return [binding for binding in known if binding.matches(event.provider, event.kind)]
    named = [binding for binding in known if binding.trigger_id == only]
    if not named:
        listed = ", ".join(binding.trigger_id for binding in known) or "none"
        raise NotFoundError(f"there is no trigger {only!r}; the manifest has: {listed}")
    return named


def _prepare(
    bindings: Sequence[Binding], event: TriggerEvent, only: str | None
) -> tuple[dict[str, Any], list[_Candidate]]:
    event_json = event.to_json()
    _check_size("its payload", event_json["provider_payload"].get("raw"), PAYLOAD_LIMIT)
    _check_size("the event with all its fields", event_json, EVENT_LIMIT)
    scope = {"event": event_json}
    return event_json, [_candidate(binding, event, scope, only) for binding in bindings]


def _check_size(what: str, value: Any, limit: int) -> None:
    size = len(encode(value))
    if size > limit:
        raise EventError(
            f"the event is too large: {what} is {size:,} bytes of JSON ({size / 2**20:.1f} MiB), "
            f"and the limit is {limit:,} ({limit // 2**20} MiB); send a reference to the content"
        )


def _candidate(
    binding: Binding, event: TriggerEvent, scope: dict[str, Any], only: str | None
) -> _Candidate:
    trigger = f"trigger {binding.trigger_id!r}, event {event.id}"
    if binding.filter is not None:
        try:
            passes = is_true(_compiled(binding.filter).evaluate(scope))
        except ExpressionError as error:
            problem = f"{trigger}: the filter {error}"
            if only is not None:
                raise EventError(f"{problem}; nothing was appended") from error
            return _Candidate(
                binding,
                event.dedupe_key,
                filtered=True,
                warning=f"{problem}; the event was taken as not matching",
            )
        if not passes:
            return _Candidate(binding, event.dedupe_key, filtered=True)
    if binding.dedupe_key is None:
        return _Candidate(binding, event.dedupe_key)
    try:
        value = _compiled(binding.dedupe_key).evaluate(scope)
    except ExpressionError as error:
        return _Candidate(
            binding,
            event.dedupe_key,
            warning=f"{trigger}: the dedupe_key {error}; the event's own key was taken",
        )
    return _Candidate(binding, _key_text(value) or event.dedupe_key)


def _key_text(value: Any) -> str:
    """A dedupe key as text; empty where the expression found none."""
    if value is None:
        return ""
    return clean_text(value) if isinstance(value, str) else encode(clean(value)).decode()


@lru_cache(maxsize=1024)
def _compiled(source: str) -> JmesExpression:
    return compile_jmespath(source)


async def _claim_and_append(
    log: EventLog, delivery: _Delivery, candidate: _Candidate, traceparent: str | None
) -> EventAddress | None:
    """The address of the envelope; None, and nothing appended, where the key is claimed."""

    def work(tx: Transaction) -> EventAddress | None:
        held = tx.inbox.claim_expiry(
            delivery.package,
            candidate.binding.trigger_id,
            candidate.dedupe_key,
            delivery.event.tenant_id,
        )
        if held is not None:
            return None
        appended = tx.append(
            _records(delivery, candidate, now_ms=tx.now_ms, traceparent=traceparent)
        )
        return address_of(appended.records[-1])

    return await log.transact(work)


def _records(
    delivery: _Delivery, candidate: _Candidate, *, now_ms: int, traceparent: str | None
) -> list[Append]:
    """The claim, the record that replay reads, and the envelope as the last one."""
    binding = candidate.binding
    claim = Append(
        topic=topics.INBOX_CLAIMS,
        kind="dedupe_claim",
        payload={
            "binding_id": binding.trigger_id,
            "dedupe_key": candidate.dedupe_key,
            "expires_at_ms": now_ms + binding.retry.retention_days * _DAY_MS,
        },
        headers=_claim_headers(delivery),
        occurred_at_ms=now_ms,
    )
    return [
        claim,
        *event_records(
            binding,
            delivery.event,
            delivery.event_json,
            package=delivery.package,
            now_ms=now_ms,
            traceparent=traceparent,
        ),
    ]


def _claim_headers(delivery: _Delivery) -> dict[str, str]:
    tenant_id = delivery.event.tenant_id
    tenant = {} if tenant_id is None else {headers.TENANT_ID: tenant_id}
    return {headers.PACKAGE: delivery.package, **tenant}

"""The headers by which an agent joins the trace of an event."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from urllib.parse import quote

from harn_temporal.headers import TRACEPARENT
from harn_temporal.telemetry import tracing
from harn_temporal.trace_ids import parse_traceparent, traceparent_in, w3c_trace_id

TRACE_ID = "A2A-Trace-Id"

_SAMPLED = "01"


def trace_headers(
    trace_id: str, event_headers: Mapping[str, str], dispatched: str | None = None
) -> dict[str, str]:
    """`A2A-Trace-Id`, and a `traceparent`: the current span's where there is one.

    Else it is of the trace that the dispatch joins (`dispatched`, as its envelope has it), of the
    sender's where only the event came with one, and of the event's own where neither is usable.
    """
    joined = parse_traceparent(dispatched) or parse_traceparent(traceparent_in(event_headers))
    if joined is not None:
        trace, _, flags = joined
    else:
        trace, flags = w3c_trace_id(trace_id), _SAMPLED
    made = f"00-{trace}-{secrets.token_hex(8)}-{flags}"
    return {
        TRACE_ID: quote(trace_id, safe="!#$&'()*+,/:;=?@[]~"),
        TRACEPARENT: tracing.current_traceparent() or made,
    }

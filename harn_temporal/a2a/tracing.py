"""The headers by which an agent joins the trace of an event."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from hashlib import sha256
from urllib.parse import quote

from harn_temporal.headers import TRACEPARENT

TRACE_ID = "A2A-Trace-Id"

_TRACEPARENT = re.compile(
    r"[0-9a-f]{2}-(?P<trace>[0-9a-f]{32})-(?P<span>[0-9a-f]{16})-(?P<flags>[0-9a-f]{2})"
)
_UUID_HEX = re.compile(r"[0-9a-f]{32}")
_SAMPLED = "01"


def trace_headers(trace_id: str, event_headers: Mapping[str, str]) -> dict[str, str]:
    """`A2A-Trace-Id`, and a `traceparent` of the sender's trace where the event came with one."""
    found = _TRACEPARENT.fullmatch(event_headers.get(TRACEPARENT, ""))
    if found and found["trace"].strip("0") and found["span"].strip("0"):
        trace, flags = found["trace"], found["flags"]
    else:
        trace, flags = _trace_of(trace_id), _SAMPLED
    return {
        TRACE_ID: quote(trace_id, safe="!#$&'()*+,/:;=?@[]~"),
        TRACEPARENT: f"00-{trace}-{secrets.token_hex(8)}-{flags}",
    }


def _trace_of(trace_id: str) -> str:
    """Our trace ids hold a UUID, which is a trace id of W3C as it is."""
    bare = trace_id.removeprefix("trace_").replace("-", "").lower()
    return bare if _UUID_HEX.fullmatch(bare) else sha256(trace_id.encode()).hexdigest()[:32]

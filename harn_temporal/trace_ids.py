"""Trace ids of W3C, and the header that carries them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import sha256

_TRACEPARENT = re.compile(
    r"[0-9a-f]{2}-(?P<trace>[0-9a-f]{32})-(?P<span>[0-9a-f]{16})-(?P<flags>[0-9a-f]{2})(-.*)?"
)
_UUID_HEX = re.compile(r"[0-9a-f]{32}")


def w3c_trace_id(trace_id: str) -> str:
    """The trace that an event begins which joined none; the same wherever it is asked for.

    Our trace ids hold a UUID, which is a trace id of W3C as it is.
    """
    bare = trace_id.removeprefix("trace_").replace("-", "").lower()
    if _UUID_HEX.fullmatch(bare) and bare.strip("0"):
        return bare
    return sha256(trace_id.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def parse_traceparent(written: str | None) -> tuple[str, str, str] | None:
    """Trace id, span id and flags in hexadecimal; None for what is no usable `traceparent`."""
    found = _TRACEPARENT.fullmatch(written or "")
    if found is None or not found["trace"].strip("0") or not found["span"].strip("0"):
        return None
    return found["trace"], found["span"], found["flags"]


def traceparent_in(headers: Mapping[str, str]) -> str | None:
    """The header of a sender, whose names may be in any case."""
    return next((value for name, value in headers.items() if name.lower() == "traceparent"), None)

"""What follows from the way an attempt ended: a retry, or the end of its dispatch.

| status    | with attempts left | without                                      |
| --------- | ------------------ | -------------------------------------------- |
| success   | final `succeeded`  | final `succeeded`                            |
| failed    | retry              | final `dlq`                                  |
| timeout   | retry              | final `dlq`                                  |
| denied    | final `failed`     | final `failed`: a refusal is no dead letter  |
| waiting   | final `waiting`    | final `waiting`                              |
| cancelled | final `cancelled`  | final `cancelled`                            |
"""

from __future__ import annotations

from typing import Any

from harn_temporal.bindings import Binding
from harn_temporal.canonical import PAYLOAD_DEPTH_LIMIT, clean, clean_text, encode
from harn_temporal.contracts import AttemptOutcome, AttemptStatus, DispatchStatus, ErrorClass
from harn_temporal.errors import Denied, NotJsonError

ERROR_LIMIT = 8 * 1024
"""Bytes of UTF-8 that an error's text may have in a record."""

RESULT_LIMIT = 16 * 1024 * 1024
"""Bytes of JSON that a handler's result may have."""

_ELLIPSIS = "…"
_RETRIED: frozenset[AttemptStatus] = frozenset({"failed", "timeout"})
_FINAL: dict[AttemptStatus, DispatchStatus] = {
    "success": "succeeded",
    "denied": "failed",
    "waiting": "waiting",
    "cancelled": "cancelled",
}
_CLASS: dict[AttemptStatus, ErrorClass] = {
    "failed": "handler_panic",
    "timeout": "handler_timeout",
    "denied": "auth_failed",
}


def error_text(text: str) -> str:
    """`text` as records carry it: clean, and cut with an ellipsis at ERROR_LIMIT bytes."""
    text = clean_text(text)
    raw = text.encode()
    if len(raw) <= ERROR_LIMIT:
        return text
    # A cut inside a character leaves a few bytes behind that are none: they are dropped.
    return raw[: ERROR_LIMIT - len(_ELLIPSIS.encode())].decode(errors="ignore") + _ELLIPSIS


def error_class_of(error: BaseException) -> ErrorClass:
    """The class of an exception that a handler raised, by its type and never by its text.

    An exception of an HTTP client counts by the status it carries, as `status_code` of itself
    or of its `response` (httpx, requests, aiohttp's `status`), or as `code` (urllib).
    """
    if isinstance(error, TimeoutError):
        return "handler_timeout"
    if isinstance(error, Denied):
        return "auth_failed"
    status = _http_status(error)
    if status is not None and status in (401, 403):
        return "auth_failed"
    if status is not None and 500 <= status <= 599:  # noqa: PLR2004 - the range HTTP defines
        return "provider_5xx"
    return "handler_panic"


def verdict(
    binding: Binding,
    attempt: int,
    status: AttemptStatus,
    *,
    result: Any = None,
    error: str | None = None,
    error_class: ErrorClass | None = None,
) -> AttemptOutcome:
    """The outcome of `attempt` (counted from 1) under the retry policy of `binding`.

    A result that JSON cannot hold makes the attempt a failed one, with an error that says where
    in the result; so does one above RESULT_LIMIT. Without an `error_class` the status gives it.
    `error` is cleaned and cut.
    """
    value = None
    if status == "success":
        try:
            value = clean(result, depth_limit=PAYLOAD_DEPTH_LIMIT)
        except NotJsonError as problem:
            status = "failed"
            error = f"the handler returned what JSON cannot hold: {problem}"
            error_class = "handler_panic"
    if status == "success" and (size := len(encode(value))) > RESULT_LIMIT:
        status, value, error_class = "failed", None, "handler_panic"
        error = (
            f"the handler returned {size:,} bytes of JSON, and the limit is {RESULT_LIMIT:,} "
            f"({RESULT_LIMIT // 2**20} MiB); return a reference to the content"
        )
    if status == "success":
        error = None
    elif error is None:
        error = f"the attempt ended as {status}"
    delay = binding.retry.delay_before(attempt + 1) if status in _RETRIED else None
    return AttemptOutcome(
        attempt=attempt,
        status=status,
        result=value,
        error=None if error is None else error_text(error),
        error_class=(error_class or _CLASS[status]) if status in _CLASS else None,
        retry_in_ms=delay,
        final=_FINAL.get(status, "dlq") if delay is None else None,
    )


def _http_status(error: BaseException) -> int | None:
    response = getattr(error, "response", None)
    for holder, name in (
        (response, "status_code"),
        (error, "status_code"),
        (error, "status"),
        (error, "code"),
    ):
        status = getattr(holder, name, None)
        if isinstance(status, int):
            return status
    return None

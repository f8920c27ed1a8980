"""Headers are kept with an event, their secrets are not: the value goes before anything is written.

The rule is Harn's. It errs on the safe side, so a name is judged by the words in it.
"""

from __future__ import annotations

from collections.abc import Mapping

REDACTED = "[redacted]"

_SECRET_WORDS = ("authorization", "cookie", "secret", "token", "key")

_SAFE_NAMES = frozenset(
    {
        "content-length",
        "content-type",
        "idempotency-key",  # ours: it tells deliveries apart, and opens nothing
        "linear-signature",
        "stripe-signature",
        "user-agent",
        "webhook-signature",
        "x-correlation-id",
        "x-github-hook-id",
        "x-hub-signature",
        "x-hub-signature-256",
        "x-notion-signature",
        "x-slack-signature",
    }
)
_SAFE_WORDS = ("request-id", "timestamp")
_SAFE_ENDINGS = ("-event", "-delivery")


def is_redacted(name: str) -> bool:
    """Whether the value of the header `name` (in any case) is blanked."""
    lower = name.lower()
    if not any(word in lower for word in _SECRET_WORDS):
        return False
    return not (
        lower in _SAFE_NAMES
        or any(word in lower for word in _SAFE_WORDS)
        or lower.endswith(_SAFE_ENDINGS)
    )


def redact(headers: Mapping[str, str]) -> dict[str, str]:
    """A copy of `headers` with `[redacted]` in place of each value that may be a secret."""
    return {name: REDACTED if is_redacted(name) else value for name, value in headers.items()}

"""Secrets of a hop: read from the environment, sent to one authority, and shown nowhere."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harn_temporal.a2a.failures import A2aError, CredentialError

PUSH_URL = "HARN_A2A_PUSH_URL"
PUSH_TOKEN = "HARN_A2A_PUSH_TOKEN"  # noqa: S105 - the variable's name
REDACTED = "[redacted]"

_HEADER_SAFE = re.compile(r"[\x21-\x7e]+")


@dataclass(frozen=True, repr=False)
class Secrets:
    """`push_url` is where the agent may report a task; None where nothing is set up for it."""

    bearer: str | None = None
    push_url: str | None = None
    push_token: str | None = None
    others: frozenset[str] = frozenset()
    """Tokens of other bindings, which the same agent may have been given."""

    @property
    def tokens(self) -> frozenset[str]:
        """All that must not be shown."""
        return self.others | {token for token in (self.bearer, self.push_token) if token}

    def authorization(self) -> dict[str, str]:
        return {} if self.bearer is None else {"authorization": f"Bearer {self.bearer}"}

    def scrubbed(self, value: Any) -> Any:
        """`value` without the tokens: an agent that repeats them must not get them recorded.

        Takes JSON of limited depth, as `decode_reply` gives it.
        """
        if not self.tokens:
            return value
        longest_first = sorted(self.tokens, key=len, reverse=True)  # one may begin another
        # In any case: hosts and types of content are lower-cased on their way.
        written = re.compile("|".join(map(re.escape, longest_first)), re.IGNORECASE)
        return _scrubbed(value, written)

    def scrub_error(self, error: A2aError) -> A2aError:
        """The same error; what it says no longer holds a token."""
        error.args = tuple(self.scrubbed(part) for part in error.args)
        return error


def read_secrets(environ: Mapping[str, str], bearer_env: str | None) -> Secrets:
    """The secrets for one binding. Raises CredentialError, which never holds a value."""
    bearer = None
    if bearer_env is not None:
        bearer = environ.get(bearer_env, "").strip()
        if not bearer:
            raise CredentialError(
                f"the environment variable {bearer_env}, which the binding names as bearer_env, "
                "is not set on this worker"
            )
        if not _HEADER_SAFE.fullmatch(bearer):  # httpx would quote the value in its error
            raise CredentialError(
                f"the environment variable {bearer_env} holds characters that no HTTP header can"
            )
    return Secrets(
        bearer=bearer,
        push_url=environ.get(PUSH_URL, "").strip() or None,
        push_token=environ.get(PUSH_TOKEN, "").strip() or None,
    )


def has_token(environ: Mapping[str, str], bearer_env: str) -> bool:
    try:
        read_secrets(environ, bearer_env)
    except CredentialError:
        return False
    return True


def _scrubbed(value: Any, tokens: re.Pattern[str]) -> Any:
    if isinstance(value, str):
        return tokens.sub(REDACTED, value)
    if isinstance(value, list):
        return [_scrubbed(item, tokens) for item in value]
    if isinstance(value, dict):
        return {_scrubbed(key, tokens): _scrubbed(item, tokens) for key, item in value.items()}
    return value

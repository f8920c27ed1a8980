"""Why a hop did not give what was asked. Retryable or not is a property of the class.

A2aError
├── AgentRefusedError       must not be spoken to, or refuses us             denied, not retried
├── AgentTimeoutError       did not answer in time                           timeout
├── AgentUnreachableError   no connection, or one that broke
│   └── ConnectionRefusedByAgentError   nothing listens there
├── AgentHttpError          an HTTP status that is no answer; may name a time to wait
├── AgentProtocolError      an answer that is no A2A
│   ├── AgentRpcError       a JSON-RPC error
│   └── DiscoveryError      no usable agent card
├── CredentialError         our own credentials for the agent are not set up
├── TaskFailedError         the agent's task failed
└── TaskCanceledError       the agent's task was cancelled there             not retried
"""

from __future__ import annotations

from typing import ClassVar

from harn_temporal.contracts import AttemptStatus, ErrorClass
from harn_temporal.errors import HarnTemporalError

SERVER_ERRORS = range(500, 600)
TASK_IS_GONE = frozenset({-32001, -32002})
"""JSON-RPC codes of A2A: no such task; the task cannot be cancelled (any more)."""


class A2aError(HarnTemporalError):
    """`retry_after_ms` is how long the agent asked not to be called again, where it did."""

    status: ClassVar[AttemptStatus] = "failed"
    error_class: ErrorClass = "unknown"
    retryable: ClassVar[bool] = True
    retry_after_ms: int | None = None

    @property
    def says_nothing_of_the_task(self) -> bool:
        """Whether a task that was asked about may go on all the same: asking again may tell."""
        return True


class AgentRefusedError(A2aError):
    """Not spoken to for a rule of ours, or the agent says that we may not."""

    status = "denied"
    error_class = "auth_failed"
    retryable = False

    @property
    def says_nothing_of_the_task(self) -> bool:
        return False


class AgentTimeoutError(A2aError):
    status = "timeout"
    error_class = "handler_timeout"


class AgentUnreachableError(A2aError):
    """No connection, one that broke, or a TLS handshake that failed."""


class CertificateError(AgentUnreachableError):
    """The peer speaks TLS and cannot prove to be who was asked for: never a reason for HTTP."""


class ConnectionRefusedByAgentError(AgentUnreachableError):
    """Every address of the host refused the connection."""


class AgentHttpError(A2aError):
    def __init__(self, message: str, *, code: int, retry_after_ms: int | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.retry_after_ms = retry_after_ms
        if code in SERVER_ERRORS:
            self.error_class = "provider_5xx"


class AgentProtocolError(A2aError):
    """Garbage: no JSON, the wrong content type, too long, or not the shape of an answer."""


class AgentRpcError(AgentProtocolError):
    def __init__(self, message: str, *, code: int | None) -> None:
        super().__init__(message)
        self.code = code

    @property
    def says_nothing_of_the_task(self) -> bool:
        return self.code not in TASK_IS_GONE


class DiscoveryError(AgentProtocolError):
    """No agent card was found, or it offers nothing that is spoken here."""


class CredentialError(A2aError):
    """The credentials that the binding names are missing on this worker, or malformed."""

    error_class = "auth_failed"


class TaskFailedError(A2aError):
    @property
    def says_nothing_of_the_task(self) -> bool:
        return False


class TaskCanceledError(A2aError):
    retryable = False

    @property
    def says_nothing_of_the_task(self) -> bool:
        return False

"""How long a dispatch waits before an attempt. Attempt 1 never waits."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

SVIX_SECONDS = (0, 5, 300, 1_800, 7_200, 18_000, 36_000, 36_000)
"""Seconds before attempt 1, 2, …; the last one holds for every later attempt."""

DEFAULT_MAX_ATTEMPTS = 7
MAX_ATTEMPTS_LIMIT = 100


class Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Immediate(Frozen):
    backoff: Literal["immediate"] = "immediate"

    def delay_ms(self, attempt: int) -> int:  # noqa: ARG002 - the shape all schedules share
        return 0


class Svix(Frozen):
    backoff: Literal["svix"] = "svix"

    def delay_ms(self, attempt: int) -> int:
        return SVIX_SECONDS[min(attempt, len(SVIX_SECONDS)) - 1] * 1000


class Linear(Frozen):
    backoff: Literal["linear"] = "linear"
    interval_ms: int = Field(ge=0)

    def delay_ms(self, attempt: int) -> int:
        return 0 if attempt <= 1 else self.interval_ms


class Exponential(Frozen):
    backoff: Literal["exponential"] = "exponential"
    base_ms: int = Field(ge=0)
    cap_ms: int = Field(ge=0)

    def delay_ms(self, attempt: int) -> int:
        if attempt <= 1:
            return 0
        return int(min(self.base_ms * 2 ** (attempt - 2), self.cap_ms))


Schedule = Annotated[Immediate | Svix | Linear | Exponential, Field(discriminator="backoff")]


class RetryPolicy(Frozen):
    """`max_attempts` counts all attempts, the first included."""

    schedule: Schedule = Svix()
    max_attempts: int = Field(default=DEFAULT_MAX_ATTEMPTS, ge=1, le=MAX_ATTEMPTS_LIMIT)
    retention_days: int = Field(default=7, ge=1)

    def delay_before(self, attempt: int) -> int | None:
        """Milliseconds to wait before `attempt` (counted from 1), or None past the last one."""
        return None if attempt > self.max_attempts else self.schedule.delay_ms(attempt)

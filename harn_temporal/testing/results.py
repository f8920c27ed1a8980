"""What became of an event, to be looked at and asserted on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import JsonValue

from harn_temporal.contracts import AttemptStatus, DispatchStatus, ErrorClass
from harn_temporal.durations import format_duration
from harn_temporal.eventlog.records import Record

ResultStatus = DispatchStatus | Literal["duplicate", "filtered"]

_ANYTHING: Any = object()


@dataclass(frozen=True, slots=True)
class Attempt:
    """`exception` is what the handler raised. `retry_in_ms` is the wait that followed."""

    number: int
    status: AttemptStatus
    started_at_ms: int
    result: JsonValue = None
    error: str | None = None
    error_class: ErrorClass | None = None
    retry_in_ms: int | None = None
    exception: BaseException | None = None

    def __str__(self) -> str:
        wait = ""
        if self.retry_in_ms is not None:
            wait = f"; next in {format_duration(self.retry_in_ms)}"
        said = f": {self.error}" if self.error else ""
        return f"attempt {self.number} {self.status}{said}{wait}"


@dataclass(frozen=True, slots=True)
class DispatchResult:
    """How the event ended for one binding.

    `status` is that of the dispatch's outcome, or `duplicate` or `filtered` where there was no
    dispatch. `waited_ms` is the time that went by in retry waits. `records` are what the dispatch
    appended to the EventLog, topic by topic.
    """

    trigger_id: str
    binding_key: str
    event_id: str
    status: ResultStatus
    attempts: tuple[Attempt, ...] = ()
    result: JsonValue = None
    error: str | None = None
    waited_ms: int = 0
    records: tuple[Record, ...] = ()

    def assert_succeeded(self, result: Any = _ANYTHING, *, attempts: int | None = None) -> None:
        """Raise AssertionError unless it succeeded, with this result and so many attempts.

        Where the handler raised, its exception is the cause, so that pytest shows where.
        """
        __tracebackhide__ = True
        self.assert_status("succeeded", attempts=attempts)
        if result is not _ANYTHING and self.result != result:
            raise AssertionError(
                f"{self.binding_key} gave another result\n"
                f"  expected: {result!r}\n  got:      {self.result!r}"
            )

    def assert_status(
        self, status: ResultStatus, *, attempts: int | None = None, error: str | None = None
    ) -> None:
        """Raise AssertionError unless it ended so.

        `attempts` is how many there were, `error` a part of the error's text.
        """
        __tracebackhide__ = True
        problems = []
        if self.status != status:
            problems.append(f"it ended as {self.status}, not {status}")
        if attempts is not None and len(self.attempts) != attempts:
            problems.append(f"it took {len(self.attempts)} attempts, not {attempts}")
        if error is not None and error not in (self.error or ""):
            problems.append(f"its error has no {error!r}: {self.error!r}")
        if problems:
            raise AssertionError(self._told(problems)) from self._cause()

    def _told(self, problems: list[str]) -> str:
        heading = f"{self.binding_key}: {'; '.join(problems)}"
        reason = [f"  error: {self.error}"] if self.error and not self.attempts else []
        return "\n".join([heading, *reason, *(f"  {attempt}" for attempt in self.attempts)])

    def _cause(self) -> BaseException | None:
        return self.attempts[-1].exception if self.attempts else None


@dataclass(frozen=True, slots=True)
class Delivery:
    """The results of one event, in the manifest's order; empty where no trigger matches."""

    event_id: str
    results: tuple[DispatchResult, ...]

    def __iter__(self) -> Iterator[DispatchResult]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    def __getitem__(self, trigger_id: str) -> DispatchResult:
        """Raises KeyError, which says which triggers matched."""
        for result in self.results:
            if result.trigger_id == trigger_id:
                return result
        matched = ", ".join(self.triggers) or "none"
        raise KeyError(f"the event does not match trigger {trigger_id!r}; it matches: {matched}")

    @property
    def triggers(self) -> tuple[str, ...]:
        """The ids of the triggers that match, whether or not the event was dispatched for them."""
        return tuple(result.trigger_id for result in self.results)

    @property
    def only(self) -> DispatchResult:
        """The one result. Raises AssertionError where there are more or none."""
        __tracebackhide__ = True
        if len(self.results) != 1:
            matched = ", ".join(self.triggers) or "none"
            raise AssertionError(f"the event matches {len(self.results)} triggers: {matched}")
        return self.results[0]

"""What the Web UI shows of a dispatch: search attributes, current details, and summaries."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from temporalio import workflow
from temporalio.common import Priority as TemporalPriority
from temporalio.common import SearchAttributeKey, SearchAttributePair

from harn_temporal.bindings import Priority
from harn_temporal.contracts import AttemptOutcome, DispatchRequest
from harn_temporal.durations import format_duration
from harn_temporal.gates.decisions import Wait

HARN_TRIGGER = SearchAttributeKey.for_keyword("HarnTrigger")
HARN_BINDING = SearchAttributeKey.for_keyword("HarnBinding")
HARN_EVENT = SearchAttributeKey.for_keyword("HarnEvent")
HARN_TENANT = SearchAttributeKey.for_keyword("HarnTenant")
HARN_QUEUE = SearchAttributeKey.for_keyword("HarnQueue")
HARN_STATUS = SearchAttributeKey.for_keyword("HarnStatus")
HARN_ATTEMPT = SearchAttributeKey.for_int("HarnAttempt")

SEARCH_KEYS = (
    HARN_TRIGGER,
    HARN_BINDING,
    HARN_EVENT,
    HARN_TENANT,
    HARN_QUEUE,
    HARN_STATUS,
    HARN_ATTEMPT,
)

KEYWORD_LIMIT = 255
"""Characters of a keyword that SQLite and PostgreSQL hold; longer ones are cut."""

RUNNING = "running"
WAITING_FOR_RETRY = "retrying"
FOLLOWING = "following"
WAITING_AT_GATE = "waiting"

_ERROR_LIMIT = 500
_ID_LIMIT = 100


PRIORITY_KEYS: dict[Priority, int] = {"high": 1, "normal": 3, "low": 5}
"""Temporal's priority keys go from 1, the most urgent, to 5; 3 is what it takes without one."""


def priority_key(priority: Priority, fairness_key: str | None = None) -> TemporalPriority:
    return TemporalPriority(priority_key=PRIORITY_KEYS[priority], fairness_key=fairness_key)


def search_attributes(request: DispatchRequest) -> list[SearchAttributePair[Any]]:
    """What a dispatch can be searched by from its start."""
    pairs: list[SearchAttributePair[Any]] = [
        SearchAttributePair(HARN_TRIGGER, request.binding.trigger_id[:KEYWORD_LIMIT]),
        SearchAttributePair(HARN_BINDING, request.binding.binding_key[:KEYWORD_LIMIT]),
        SearchAttributePair(HARN_EVENT, request.event_id[:KEYWORD_LIMIT]),
        SearchAttributePair(HARN_STATUS, RUNNING),
        SearchAttributePair(HARN_ATTEMPT, 1),
    ]
    if request.tenant_id is not None:
        pairs.append(SearchAttributePair(HARN_TENANT, request.tenant_id[:KEYWORD_LIMIT]))
    return pairs


def retry_summary(delay_ms: int, backoff: str) -> str:
    return f"retry in {format_duration(delay_ms)} ({backoff})"


class DispatchPage:
    """The page of a dispatch that has a workflow of its own."""

    def __init__(self, request: DispatchRequest) -> None:
        self._max_attempts = request.binding.retry.max_attempts
        self._backoff = request.binding.retry.schedule.backoff
        self._upserts = request.search_attributes

    def attempt(self, attempt: int) -> None:
        workflow.set_current_details(f"Running **attempt {attempt} of {self._max_attempts}**.")
        if attempt > 1 and self._upserts:
            workflow.upsert_search_attributes(
                [HARN_STATUS.value_set(RUNNING), HARN_ATTEMPT.value_set(attempt)]
            )

    def predicate(self) -> None:
        workflow.set_current_details("Evaluating the predicate `when`.")

    def gate_wait(self, wait: Wait, until: datetime, *, first: bool) -> None:
        """Shown anew for each answer; the search attribute is written for the first only."""
        workflow.set_current_details(
            f"**Waiting for {_waited_for(wait)}**, {_gate_end(wait, until)}."
        )
        if first and self._upserts:
            workflow.upsert_search_attributes([HARN_STATUS.value_set(WAITING_AT_GATE)])

    def passed_gates(self) -> None:
        if self._upserts:
            workflow.upsert_search_attributes([HARN_STATUS.value_set(RUNNING)])

    def retry_wait(self, failed: int, delay_ms: int, until: datetime, error: str | None) -> None:
        workflow.set_current_details(
            f"**Waiting for attempt {failed + 1} of {self._max_attempts}** until "
            f"{_moment(until)} ({self._backoff}, {format_duration(delay_ms)}).\n\n"
            f"Attempt {failed} failed:\n\n{_quoted(error)}"
        )
        if self._upserts:
            workflow.upsert_search_attributes([HARN_STATUS.value_set(WAITING_FOR_RETRY)])

    def following(self, outcome: AttemptOutcome, until: datetime, give_up: datetime) -> None:
        """Shown anew for each question; the search attribute is written for the first only."""
        task = outcome.remote_task
        assert task is not None  # what is pending has one
        text = (
            f"**Following task `{_code(task.task_id)}`** of agent `{_code(task.target_agent)}`, "
            f"which is {_code(task.state)}. It is asked again at {_moment(until)}, until "
            f"{_moment(give_up)}."
        )
        if outcome.error:
            text += f"\n\nThe agent could not be asked:\n\n{_quoted(outcome.error)}"
        workflow.set_current_details(text)

    def follows(self) -> None:
        if self._upserts:
            workflow.upsert_search_attributes([HARN_STATUS.value_set(FOLLOWING)])

    def store_wait(self, until: datetime) -> None:
        workflow.set_current_details(
            "**Waiting for the EventLog**, which cannot be reached. "
            f"The step is tried again at {_moment(until)}; this counts as no attempt."
        )

    def cancelling(self) -> None:
        workflow.set_current_details("**Cancelled.** Writing that down.")

    def ended(self, status: str, attempts: int, error: str | None) -> None:
        count = f"{attempts} attempt{'' if attempts == 1 else 's'}"
        text = f"Ended as **{status}** after {count}."
        if error:
            text += f"\n\n{_quoted(error)}"
        workflow.set_current_details(text)
        if self._upserts:
            workflow.upsert_search_attributes([HARN_STATUS.value_set(status)])


def _waited_for(wait: Wait) -> str:
    text = f"{wait.kind} {_code(wait.gate)}"
    if wait.position is not None:
        return f"{text}, {_ordinal(wait.position)} of {max(wait.waiting, wait.position)}"
    if wait.kind == "batch":
        return f"{text}, {wait.waiting} gathered so far"
    return f"{text}, one of {wait.waiting}" if wait.kind == "concurrency" else text


def _gate_end(wait: Wait, until: datetime) -> str:
    if wait.kind == "concurrency":
        return f"until a permit is free; it looks again at {_moment(until)}"
    return f"until {_moment(until)}"


def _ordinal(number: int) -> str:
    if number % 100 in (11, 12, 13):
        return f"{number}th"
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th') }"


def after(delay: timedelta) -> datetime:
    return workflow.now() + delay


def _moment(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d %H:%M:%S UTC")


def _code(text: str) -> str:
    """An agent's text where it can be read as no markup."""
    return "".join(char for char in text[:_ID_LIMIT] if char.isprintable() and char != "`")


def _quoted(error: str | None) -> str:
    """The error as an indented code block, which no text inside can end."""
    lines = (error or "no message")[:_ERROR_LIMIT].splitlines() or [""]
    return "\n".join(f"    {line}" for line in lines)

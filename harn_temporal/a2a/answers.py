"""What an agent's answer means, in both generations of the protocol."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from harn_temporal.a2a.failures import (
    AgentProtocolError,
    AgentRefusedError,
    TaskCanceledError,
    TaskFailedError,
)
from harn_temporal.canonical import PAYLOAD_DEPTH_LIMIT, clean, decode
from harn_temporal.errors import NotJsonError

PENDING = frozenset({"submitted", "working", "input-required", "auth-required"})
INTERRUPTED = frozenset({"input-required", "auth-required"})
"""Pending states in which the agent goes on only when somebody gives it what it asks for."""

HANDLE_KIND = "a2a_task_handle"

_ID_LIMIT = 2_000
"""Ids go into histories, which have no room for whatever an agent likes."""

_STATE_PREFIX = "TASK_STATE_"
_AGENT_ROLES = frozenset({"agent", "ROLE_AGENT"})


@dataclass(frozen=True)
class Completed:
    """`result` is the agent's last text, as JSON where it is JSON, else the task or message."""

    result: Any
    task_id: str | None = None


@dataclass(frozen=True)
class Pending:
    """`asked` is what the agent says it waits for, where it says something."""

    task_id: str
    state: str
    asked: str | None


Answer = Completed | Pending


def read_answer(result: Any) -> Answer:
    """What the result of a message, or of asking about a task, means.

    Raises TaskFailedError, TaskCanceledError, AgentRefusedError (rejected), or AgentProtocolError
    where it is neither a message nor a task.
    """
    if not isinstance(result, dict):
        raise AgentProtocolError("the agent's result is neither a message nor a task")
    for key in ("task", "message"):  # protocol 1.0 wraps the one it means
        if isinstance(result.get(key), dict) and "kind" not in result and "status" not in result:
            result = result[key]
            break
    if isinstance(result.get("status"), dict):
        return _read_task(result)
    if isinstance(result.get("parts"), list):
        text = _last_text([result])
        return Completed(result if text is None else _parsed(text))
    raise AgentProtocolError("the agent's result is neither a message nor a task")


def _read_task(task: Mapping[str, Any]) -> Answer:
    status: Mapping[str, Any] = task["status"]
    task_id, state = task.get("id"), _state(status.get("state"))
    said = _last_text(_agent_messages([status.get("message")]))
    if isinstance(task_id, str) and len(task_id) > _ID_LIMIT:
        raise AgentProtocolError(f"the agent's task has an id of {len(task_id)} characters")
    if state == "completed":
        text = _task_text(task)
        result = dict(task) if text is None else _parsed(text)
        return Completed(result, task_id if isinstance(task_id, str) else None)
    if state == "failed":
        raise TaskFailedError(f"the agent's task failed: {said or 'it gives no reason'}")
    if state == "rejected":
        raise AgentRefusedError(f"the agent rejected the task: {said or 'it gives no reason'}")
    if state == "canceled":
        raise TaskCanceledError(f"the agent's task was canceled: {said or 'it gives no reason'}")
    if state in PENDING and isinstance(task_id, str) and task_id:
        return Pending(task_id, state, said)
    if state in PENDING:
        raise AgentProtocolError(f"the agent's task is {state} and has no id")
    raise AgentProtocolError(f"the agent's task is in the unknown state {str(state)[:50]!r}")


def _state(value: Any) -> str:
    """A state as protocol 0.3 writes it."""
    text = value if isinstance(value, str) else ""
    if text.startswith(_STATE_PREFIX):
        text = text.removeprefix(_STATE_PREFIX).lower().replace("_", "-")
    return text


def _task_text(task: Mapping[str, Any]) -> str | None:
    """The agent's last text: of the artifacts, else of the status, else of the history."""
    for speakers in (
        _tables(task.get("artifacts")),
        _agent_messages([task["status"].get("message")]),
        _agent_messages(task.get("history")),
    ):
        text = _last_text(speakers)
        if text is not None:
            return text
    return None


def _last_text(speakers: Iterable[Mapping[str, Any]]) -> str | None:
    texts = [
        part["text"]
        for speaker in speakers
        for part in _tables(speaker.get("parts"))
        if isinstance(part.get("text"), str)
    ]
    return texts[-1] if texts else None


def _agent_messages(value: Any) -> Iterator[Mapping[str, Any]]:
    return (said for said in _tables(value) if str(said.get("role")) in _AGENT_ROLES)


def _tables(value: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, list):
        yield from (item for item in value if isinstance(item, dict))


def _parsed(text: str) -> Any:
    try:
        return clean(decode(text), depth_limit=PAYLOAD_DEPTH_LIMIT)
    except NotJsonError:
        return text

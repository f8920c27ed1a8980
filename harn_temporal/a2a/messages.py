"""What is said to an agent, in both generations of the protocol."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from harn_temporal.a2a.cards import Generation
from harn_temporal.a2a.credentials import Secrets
from harn_temporal.canonical import encode

VERSIONS: dict[Generation, str] = {"1.0": "1.0", "0.3": "0.3.0"}
"""Of the header `A2A-Version`."""

SEND: dict[Generation, str] = {"1.0": "SendMessage", "0.3": "message/send"}
GET_TASK: dict[Generation, str] = {"1.0": "GetTask", "0.3": "tasks/get"}
CANCEL_TASK: dict[Generation, str] = {"1.0": "CancelTask", "0.3": "tasks/cancel"}

KIND = "harn.trigger.dispatch"


@dataclass(frozen=True)
class HopMessage:
    """One dispatch, as an agent is told of it. `message_id` is the same on each attempt."""

    message_id: str
    trace_id: str
    event_id: str
    trigger_id: str
    binding_key: str
    target_agent: str
    event: dict[str, Any]
    actor_chain: dict[str, Any] | None = None
    traceparent: str | None = None
    """What the dispatch joins; a header of the call, no part of the message."""


def message_id(*, trace_id: str, event_id: str, trigger_id: str, replay: int | None) -> str:
    """The same for each attempt, so a peer can drop what it has; another for a replay."""
    tail = "" if replay is None else f".r{replay}"
    return f"{trace_id}.{event_id}.{trigger_id}{tail}"


def send_params(
    message: HopMessage, generation: Generation, secrets: Secrets, *, wait: bool
) -> dict[str, Any]:
    """The parameters of a message. With `wait` the agent answers when it is done, if it can."""
    wait = wait and secrets.push_url is None
    envelope = encode({"kind": KIND, **_ids(message), "event": message.event}).decode()
    said: dict[str, Any] = {
        "messageId": message.message_id,
        "contextId": message.trace_id,
        "metadata": _ids(message),
    }
    if generation == "1.0":
        said |= {"role": "ROLE_USER", "parts": [{"text": envelope}]}
        asked: dict[str, Any] = {"returnImmediately": not wait}
        push_key = "taskPushNotificationConfig"
    else:
        said |= {"kind": "message", "role": "user", "parts": [{"kind": "text", "text": envelope}]}
        asked = {"blocking": wait}
        push_key = "pushNotificationConfig"
    if secrets.push_url is not None:
        asked[push_key] = {"url": secrets.push_url}
        if secrets.push_token is not None:
            asked[push_key]["token"] = secrets.push_token
    return {"message": said, "configuration": asked}


def _ids(message: HopMessage) -> dict[str, Any]:
    ids = {
        "message_id": message.message_id,
        "trace_id": message.trace_id,
        "event_id": message.event_id,
        "trigger_id": message.trigger_id,
        "binding_key": message.binding_key,
        "target_agent": message.target_agent,
    }
    return ids if message.actor_chain is None else ids | {"actor_chain": message.actor_chain}

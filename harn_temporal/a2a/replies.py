"""What is in the reply to a JSON-RPC call. Nothing that is cut is cut before it is scrubbed."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from harn_temporal.a2a.answers import Answer, Completed, read_answer
from harn_temporal.a2a.credentials import Secrets
from harn_temporal.a2a.discovery import decode_reply
from harn_temporal.a2a.exchange import Reply
from harn_temporal.a2a.failures import AgentHttpError, AgentProtocolError, AgentRpcError

_RPC_TEXT_LIMIT = 2_000


def understood(reply: Reply, request_id: str, secrets: Secrets) -> Answer:
    """What the result means. Raises A2aError where it is no answer, or one that ended badly."""
    answer = read_answer(result_in(reply, request_id, secrets))
    if isinstance(answer, Completed):  # a text of JSON may have spelled a token with escapes
        return replace(answer, result=secrets.scrubbed(answer.result))
    return answer


def result_in(reply: Reply, request_id: str, secrets: Secrets) -> Any:
    """The result in a reply. Raises AgentRpcError or AgentProtocolError where there is none."""
    envelope = secrets.scrubbed(decode_reply(reply))
    error = envelope.get("error")
    if error is not None:
        raise _rpc_error(error)
    if envelope.get("id") not in (None, request_id):
        raise AgentProtocolError("the agent answered a JSON-RPC request that was not sent")
    if "result" not in envelope:
        raise AgentProtocolError("the agent's answer is no JSON-RPC: neither result nor error")
    return envelope["result"]


def _rpc_error(error: Any) -> AgentRpcError:
    fields = error if isinstance(error, dict) else {}
    code = fields.get("code")
    text = str(fields.get("message") or json.dumps(error))[:_RPC_TEXT_LIMIT]
    number = code if isinstance(code, int) else None
    return AgentRpcError(f"the agent answers with JSON-RPC error {number}: {text}", code=number)


def with_rpc_text(error: AgentHttpError, reply: Reply, secrets: Secrets) -> AgentHttpError:
    """The error with what the agent says in its body, where that is JSON-RPC."""
    try:
        said = secrets.scrubbed(decode_reply(reply)).get("error")
    except AgentProtocolError:
        return error
    if said is None:
        return error
    text = f"{error}: {_rpc_error(said)}"
    return AgentHttpError(text, code=error.code, retry_after_ms=error.retry_after_ms)


def check_content_type(reply: Reply, secrets: Secrets) -> None:
    """Raises AgentProtocolError for what does not call itself JSON."""
    written = secrets.scrubbed(reply.headers.get("content-type", ""))
    kind = written.partition(";")[0].strip().lower()
    if kind not in {"", "application/json"} and not kind.endswith("+json"):
        raise AgentProtocolError(
            f"{reply.url.copy_with(query=None)} answers with content of type {kind[:50]!r}, "
            "which is no JSON"
        )

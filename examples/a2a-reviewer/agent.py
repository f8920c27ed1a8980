"""A small A2A agent that reviews pull requests, made with a2a-sdk. It speaks protocol 1.0 and 0.3.

    pip install "a2a-sdk[http-server]" uvicorn
    python agent.py --port 8765

It listens on loopback only and speaks cleartext HTTP, so bindings say `allow_cleartext = true`.
With REVIEWER_TOKEN set it wants that token from whoever sends a message.
"""

import argparse
import asyncio
import json
import os

import uvicorn
from a2a.helpers.proto_helpers import (
    get_message_text,
    new_task_from_user_message,
    new_text_message,
    new_text_part,
)
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types.a2a_pb2 import AgentCapabilities, AgentCard, AgentInterface, AgentSkill
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware, RequestResponseEndpoint
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

THINKING_S = 0.5


class Reviewer(AgentExecutor):
    """Says whether a pull request has a title that tells what it does."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        message = context.message
        assert message is not None  # the SDK calls with one
        task = context.current_task or new_task_from_user_message(message)
        await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        await updater.start_work()
        await asyncio.sleep(THINKING_S)
        envelope = json.loads(get_message_text(message))
        raw = envelope["event"]["provider_payload"]["raw"]
        title = raw.get("pull_request", {}).get("title")
        if title is None:
            await updater.requires_input(new_text_message("which pull request?"))
            return
        review = {"title": title, "approved": len(title.split()) > 1}
        await updater.add_artifact([new_text_part(json.dumps(review))])
        await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        assert context.task_id is not None  # only a task can be cancelled
        assert context.context_id is not None
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


class TokenCheck(BaseHTTPMiddleware):
    """The card is for everybody; messages are for those who know the token."""

    async def dispatch(self, request: Request, call_next: RequestResponseEndpoint) -> Response:
        token = os.environ.get("REVIEWER_TOKEN")
        shown = request.headers.get("authorization")
        if request.method == "POST" and token is not None and shown != f"Bearer {token}":
            return JSONResponse({"error": "the token is missing or wrong"}, status_code=401)
        return await call_next(request)


def build(port: int) -> Starlette:
    url = f"http://127.0.0.1:{port}/rpc"
    card = AgentCard(
        name="Reviewer",
        description="Reviews pull requests",
        version="1.0.0",
        supported_interfaces=[
            AgentInterface(url=url, protocol_binding="JSONRPC", protocol_version=version)
            for version in ("1.0", "0.3")
        ],
        capabilities=AgentCapabilities(),
        default_input_modes=["text/plain"],
        default_output_modes=["application/json"],
        skills=[
            AgentSkill(id="triage", name="Triage", description="Reviews titles", tags=["review"])
        ],
    )
    handler = DefaultRequestHandler(Reviewer(), InMemoryTaskStore(), card)
    return Starlette(
        routes=[
            *create_agent_card_routes(card, cache_control="max-age=60"),
            *create_jsonrpc_routes(handler, "/rpc", enable_v0_3_compat=True),
        ],
        middleware=[Middleware(TokenCheck)],
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="An A2A agent that reviews pull requests")
    parser.add_argument("--port", type=int, default=8765)
    port = parser.parse_args().port
    uvicorn.run(build(port), host="127.0.0.1", port=port, log_level="warning")


if __name__ == "__main__":
    main()

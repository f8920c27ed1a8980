"""A package whose handlers end in each way there is."""

from pathlib import Path

import pytest

LIB = """
import asyncio
import time

from harn_temporal import Denied, Waiting

SEEN = []


def fine(event, context):
    SEEN.append(context.attempt)
    return {"n": event.raw["n"], "attempt": context.attempt, "tenant": context.tenant_id}


async def flaky(event, context):
    if context.attempt < 3:
        raise ConnectionError(f"down at {context.attempt}")
    return context.attempt


def broken(event):
    return event.raw["missing"]


async def denies(event):
    raise Denied("not today")


def waits(event):
    raise Waiting("for the bank")


async def sleeps(event):
    await asyncio.sleep(3600)


def unheard(event, context):
    while not context.cancelled:
        time.sleep(0.001)


def says_no(event):
    return False


def raises(event):
    raise LookupError("no idea")


def large(event):
    return "x" * 300_000
"""

TRIGGERS = """
[package]
name = "kit"

[exports]
handlers = "lib.py"
"""


def trigger(name: str, *lines: str, handler: str | None = None) -> str:
    return "\n".join(
        [
            "[[triggers]]",
            f'id = "{name}"',
            'kind = "webhook"',
            'provider = "github"',
            f'match = {{ events = ["{name}"] }}',
            f'handler = "{handler or "handlers::" + name}"',
            *lines,
            "",
        ]
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "lib.py").write_text(LIB)
    manifest = [
        TRIGGERS,
        trigger("fine"),
        trigger("flaky", 'retry = { max = 7, backoff = "svix" }'),
        trigger("broken", 'retry = { max = 3, backoff = "linear", delay_ms = 1000 }'),
        trigger("denies"),
        trigger("waits"),
        trigger("sleeps", 'retry = { max = 2, backoff = "immediate" }'),
        trigger("unheard", 'retry = { max = 1, backoff = "immediate" }'),
        trigger("says_no", 'when = "handlers::says_no"', handler="handlers::fine"),
        trigger("unsure", 'when = "handlers::raises"', handler="handlers::fine"),
        trigger("cel", "when = \"event.kind == 'cel'\"", handler="handlers::fine"),
        trigger("large", handler="handlers::large"),
        trigger("agent", handler="a2a://reviewer.example/triage"),
        trigger("queued", handler="worker://later"),
    ]
    (tmp_path / "harn.toml").write_text("\n".join(manifest))
    return tmp_path

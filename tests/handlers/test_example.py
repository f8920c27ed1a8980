"""The example that the demo runs, without Temporal."""

import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from harn_temporal.canonical import decode
from harn_temporal.contracts import INLINE_EVENT_LIMIT
from harn_temporal.events import new_event
from harn_temporal.handlers import HandlerLoader

EXAMPLE = Path(__file__).parents[2] / "examples" / "github-triage"


@pytest.fixture
def loader():
    manifest = tomllib.loads((EXAMPLE / "harn.toml").read_text(encoding="utf-8"))
    return HandlerLoader(EXAMPLE, manifest["exports"])


@pytest.fixture
def delivery():
    return new_event(
        provider="github",
        kind="issues.opened",
        payload=decode((EXAMPLE / "issues.opened.json").read_bytes()),
        headers={"X-GitHub-Event": "issues", "X-GitHub-Delivery": "d-1"},
    )


def test_the_delivery_has_what_github_sends(delivery):
    assert set(delivery.raw) == {
        "action",
        "installation",
        "issue",
        "organization",
        "repository",
        "sender",
    }
    payload = delivery.provider_payload
    assert (payload["event"], payload["action"], payload["installation_id"]) == (
        "issues",
        "opened",
        61840233,
    )
    assert payload["issue"] == delivery.raw["issue"]
    assert len(delivery.raw["repository"]) == 80
    assert len(delivery.model_dump_json().encode()) < INLINE_EVENT_LIMIT


async def test_a_new_issue_is_triaged_at_once(loader, delivery, context, executor):
    wanted = await loader.load("handlers::is_from_a_person").decide(delivery, context, executor)
    assert wanted is True
    result = await loader.load("handlers::on_new_issue").call(delivery, context, executor)
    assert result == {
        "repository": "octo-garden/lighthouse",
        "issue": 128,
        "add_labels": ["bug"],
        "priority": "high",
    }


async def test_the_channel_hears_of_it_at_the_third_attempt(loader, delivery, context, executor):
    handler = loader.load("handlers::notify_flaky")
    for attempt in (1, 2):
        with pytest.raises(ConnectionError, match=rf"\(attempt {attempt} of 5\)"):
            await handler.call(
                delivery, replace(context, attempt=attempt, max_attempts=5), executor
            )
    third = replace(context, attempt=3, max_attempts=5)
    assert await handler.call(delivery, third, executor) == {
        "channel": "#lighthouse",
        "issue": "https://github.com/octo-garden/lighthouse/issues/128",
    }

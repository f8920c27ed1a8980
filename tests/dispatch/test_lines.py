"""The line that `up` and `worker` show for each end of a dispatch."""

from __future__ import annotations

import pytest

from harn_temporal.cli.dispatch_lines import DispatchLines
from harn_temporal.contracts import AttemptOutcome
from harn_temporal.dispatch_records import cancelled, ended, held_back, refused, started
from harn_temporal.eventlog import StoreSettings, open_event_log

WORKFLOW = "dispatch/triage/new-issue/trigger_evt_1"
AT = {"workflow_id": WORKFLOW, "now_ms": 1}


@pytest.fixture
async def shown_of():
    """What is shown of batches that are appended while somebody looks."""
    log = await open_event_log(StoreSettings("memory", None))

    async def show(*batches):
        shown = []
        lines = DispatchLines(log, lambda _: True, shown.append)
        await lines.start()
        for batch in batches:
            await log.append(batch)
        await lines.catch_up()
        return shown

    yield show
    await log.close()


def attempt(request, number, status, **more):
    outcome = AttemptOutcome(attempt=number, status=status, error="boom", **more)
    begun = started(request, number, **AT)
    return begun, ended(request, outcome, started_at_ms=1, **AT)


async def test_an_attempt_that_never_began_is_not_counted(shown_of, make_request) -> None:
    request = make_request()
    assert await shown_of(cancelled(request, 0, error="enough", **AT)) == [
        "issues.opened -> new-issue@v2 cancelled: enough"
    ]


async def test_a_circuit_that_is_open_lets_no_attempt_begin(shown_of, make_request) -> None:
    request = make_request()
    assert await shown_of(refused(request, "circuit_open", "it is open", **AT)) == [
        "issues.opened -> new-issue@v2 dlq: it is open"
    ]


async def test_attempts_before_a_wait_that_is_cancelled_are_counted(shown_of, make_request) -> None:
    request = make_request()
    tried = attempt(request, 1, "failed", error_class="handler_panic", retry_in_ms=60_000)
    shown = await shown_of(*tried, cancelled(request, 1, error="enough", **AT))
    assert shown[-1] == "issues.opened -> new-issue@v2 cancelled, 1 attempt: enough"
    assert "failed in attempt 1, again in 1 m: boom" in "\n".join(shown)


async def test_a_dead_letter_has_all_its_attempts(shown_of, make_request) -> None:
    tried = attempt(make_request(), 3, "failed", error_class="handler_panic", final="dlq")
    assert await shown_of(*tried) == ["issues.opened -> new-issue@v2 dlq, 3 attempts: boom"]


@pytest.mark.parametrize(
    ("detail", "why"),
    [
        ({"gate": "new-issue@v2:acme", "max": 3}, "by the gate new-issue@v2:acme"),
        (
            {"gate": "new-issue@v2:acme", "merged_into_event_id": "trigger_evt_0"},
            "by the gate new-issue@v2:acme, merged into trigger_evt_0",
        ),
        ("the key fails", "the key fails"),
    ],
)
async def test_a_skip_says_which_gate(shown_of, make_request, detail, why) -> None:
    assert await shown_of(held_back(make_request(), detail, **AT)) == [
        f"issues.opened -> new-issue@v2 skipped: {why}"
    ]

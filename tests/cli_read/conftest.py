"""A store as a worker leaves it, and the program run on it."""

import asyncio
import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from harn_temporal.bindings import Binding, HandlerTarget
from harn_temporal.contracts import AttemptOutcome, DispatchRequest, EventAddress
from harn_temporal.dispatch_records import ended, skipped, started
from harn_temporal.entry import run
from harn_temporal.eventlog import StoreSettings, open_event_log
from harn_temporal.eventlog.log import EventLog
from harn_temporal.events import TriggerEvent, new_event
from harn_temporal.registry import register
from harn_temporal.retry import Immediate, RetryPolicy

NOW_MS = 1_767_225_600_000  # 2026-01-01T00:00:00Z
PACKAGE = "triage"


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        assert self.code == 0, self.err
        return json.loads(self.out)

    @property
    def lines(self) -> list[Any]:
        assert self.code == 0, self.err
        return [json.loads(line) for line in self.out.splitlines()]


@dataclass(frozen=True)
class Program:
    """`harn-temporal`, run in this process; `command` is for what needs one of its own."""

    state_dir: Path
    environment: dict[str, str]
    capsys: pytest.CaptureFixture[str]
    clock: Callable[[], int] = lambda: NOW_MS

    def __call__(self, *arguments: str, **environment: str) -> Ran:
        with pytest.MonkeyPatch.context() as patched:
            patched.chdir(self.state_dir.parent)
            patched.setattr(os, "environ", self.environment | environment)
            code = run([*arguments, "--state-dir", str(self.state_dir)])
        out, err = self.capsys.readouterr()
        return Ran(code, out, err)

    def command(self, *arguments: str) -> list[str]:
        program = Path(sys.executable).parent / "harn-temporal"
        return [str(program), *arguments, "--state-dir", str(self.state_dir)]

    def settings(self) -> StoreSettings:
        return StoreSettings.from_environment(self.state_dir, self.environment)

    def fill(self, work: Callable[[EventLog], Any]) -> Any:
        """Run `work` on the store, as a worker would, at the time that the clock says."""

        async def opened() -> Any:
            log = await open_event_log(self.settings(), clock=self.clock)
            try:
                return await work(log)
            finally:
                await log.close()

        return asyncio.run(opened())


@pytest.fixture(params=["sqlite", "file"])
def program(
    request: pytest.FixtureRequest, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Program:
    """The program on a state directory that does not exist yet, for each backend that lasts."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HARN_")}
    return Program(tmp_path / "state", kept | {"HARN_EVENT_LOG_BACKEND": request.param}, capsys)


def binding(trigger_id: str, fingerprint: str = "first") -> Binding:
    return Binding(
        package=PACKAGE,
        trigger_id=trigger_id,
        kind="webhook",
        provider="github",
        events=("issues.opened",),
        handler=HandlerTarget(kind="local", uri="handlers::on_new_issue"),
        retry=RetryPolicy(schedule=Immediate(), max_attempts=2),
        fingerprint=fingerprint,
    )


@dataclass(frozen=True)
class Filled:
    """The events that the store has seen, all for `triage`, whose fate their names tell.

    The dead one belongs to a tenant, the retrying one has failed once; `idle` has had no event.
    """

    succeeded: TriggerEvent
    dead: TriggerEvent
    skipped: TriggerEvent
    retrying: TriggerEvent


def event(*, tenant_id: str | None = None) -> TriggerEvent:
    return new_event(
        provider="github",
        kind="issues.opened",
        payload={"action": "opened", "issue": {"number": 7}},
        headers={"x-github-event": "issues"},
        tenant_id=tenant_id,
        clock=lambda: NOW_MS,
    )


@pytest.fixture
def filled(program: Program) -> Filled:
    events = Filled(event(), event(tenant_id="acme"), event(), event())

    async def work(log: EventLog) -> None:
        await register(log, PACKAGE, [binding("triage", "older")])
        idle, triage = await register(log, PACKAGE, [binding("idle"), binding("triage", "newer")])
        assert (idle.binding_key, triage.binding_key) == ("idle@v1", "triage@v2")
        failed = AttemptOutcome(
            attempt=1, status="failed", error="boom", error_class="handler_panic", retry_in_ms=0
        )
        dead = AttemptOutcome(
            attempt=2,
            status="timeout",
            error="10 m over",
            error_class="handler_timeout",
            final="dlq",
        )
        fine = AttemptOutcome(
            attempt=1, status="success", result={"label": "bug"}, final="succeeded"
        )
        await dispatch(log, triage, events.succeeded, [fine], at_ms=NOW_MS + 1_000)
        await dispatch(log, triage, events.dead, [failed, dead], at_ms=NOW_MS + 2_000)
        await log.append(
            skipped(
                request_for(log, triage, events.skipped),
                "predicate",
                "should_handle said no",
                workflow_id=f"dispatch/{events.skipped.id}",
                now_ms=NOW_MS + 3_000,
            )
        )
        await dispatch(log, triage, events.retrying, [failed], at_ms=NOW_MS + 4_000)

    program.fill(work)
    return events


def request_for(log: EventLog, of: Binding, event: TriggerEvent) -> DispatchRequest:
    return DispatchRequest(
        store_id=log.store_id,
        binding=of,
        event_id=event.id,
        trace_id=event.trace_id,
        tenant_id=event.tenant_id,
        address=EventAddress(topic="trigger.inbox.envelopes", event_id=1),
        event=event,
    )


async def dispatch(
    log: EventLog,
    of: Binding,
    event: TriggerEvent,
    outcomes: Sequence[AttemptOutcome],
    *,
    at_ms: int,
) -> None:
    """Append what a dispatch whose attempts ended so leaves in the log."""
    request = request_for(log, of, event)
    workflow_id = f"dispatch/{event.id}"
    history: list[Any] = []
    for outcome in outcomes:
        await log.append(started(request, outcome.attempt, workflow_id=workflow_id, now_ms=at_ms))
        batch = ended(
            request,
            outcome,
            started_at_ms=at_ms,
            now_ms=at_ms,
            workflow_id=workflow_id,
            history=history,
        )
        await log.append(batch)
        history += [each.payload for each in batch if each.kind == "attempt_recorded"]

"""A store in which a package has dispatched, and the program run on it in this process."""

import asyncio
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from harn_temporal.bindings import Binding, HandlerTarget, When
from harn_temporal.contracts import AttemptOutcome, DispatchRequest, EventAddress
from harn_temporal.dispatch_records import (
    end_key,
    ended,
    predicate_evaluated,
    start_key,
    started,
    trigger_key,
)
from harn_temporal.entry import run
from harn_temporal.eventlog import StoreSettings, open_event_log
from harn_temporal.eventlog.log import EventLog
from harn_temporal.events import TriggerEvent, new_event
from harn_temporal.naming import dispatch_workflow_id
from harn_temporal.registry import register
from harn_temporal.retry import Linear, RetryPolicy

NOW_MS = 1_767_225_600_000  # 2026-01-01T00:00:00Z

FAILED = AttemptOutcome(
    attempt=1, status="failed", error="boom", error_class="handler_panic", retry_in_ms=500
)
DEAD = AttemptOutcome(
    attempt=2, status="failed", error="boom", error_class="handler_panic", final="dlq"
)
FINE = AttemptOutcome(attempt=1, status="success", result={"label": "bug"}, final="succeeded")
OUTCOMES = {"failed": FAILED, "dead": DEAD, "fine": FINE}


@dataclass
class World:
    """`at_ms` is the store's clock. `outcomes` are by name: failed, dead (the second), fine."""

    settings: StoreSettings
    capsys: pytest.CaptureFixture[str]
    environment: dict[str, str]
    folder: Path
    at_ms: int = NOW_MS
    outcomes: dict[str, AttemptOutcome] = field(default_factory=lambda: dict(OUTCOMES))

    def fill(self, work: Callable[[EventLog], Any]) -> Any:
        async def opened() -> Any:
            log = await open_event_log(self.settings, clock=lambda: self.at_ms)
            try:
                return await work(log)
            finally:
                await log.close()

        return asyncio.run(opened())

    def run(self, *arguments: str) -> tuple[int, str, str]:
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(os, "environ", self.environment)
            code = run([*arguments, "--state-dir", str(self.folder)])
        out, err = self.capsys.readouterr()
        return code, out, err

    def json(self, *arguments: str) -> Any:
        code, out, err = self.run(*arguments, "--json")
        assert code == 0, err
        return json.loads(out)

    def event(self, **changes: Any) -> TriggerEvent:
        given: dict[str, Any] = {
            "provider": "github",
            "kind": "issues.opened",
            "payload": {},
            "clock": lambda: self.at_ms,
        }
        return new_event(**given | changes)

    @staticmethod
    def binding(trigger_id: str = "triage", **changes: Any) -> Binding:
        given: dict[str, Any] = {
            "package": "demo",
            "trigger_id": trigger_id,
            "kind": "webhook",
            "provider": "github",
            "handler": HandlerTarget(kind="local", uri="handlers::on_issue"),
            "retry": RetryPolicy(schedule=Linear(interval_ms=500), max_attempts=2),
            "fingerprint": trigger_id,
        }
        return Binding(**given | changes)

    async def dispatch(
        self,
        log: EventLog,
        event: TriggerEvent,
        *outcomes: str,
        replay: int | None = None,
        begun: bool = False,
        bindings: Sequence[Binding] = (),
        passed: bool | None = None,
    ) -> None:
        """What a worker appends for attempts that end so; with `begun` one more has begun."""
        [binding, *_] = await register(log, "demo", bindings or [self.binding()])
        if passed is not None:
            binding = binding.model_copy(
                update={"when": When(kind="cel", source='event.kind != ""')}
            )
        request = DispatchRequest(
            store_id=log.store_id,
            binding=binding,
            event_id=event.id,
            trace_id=event.trace_id,
            tenant_id=event.tenant_id,
            address=EventAddress(topic="trigger.inbox.envelopes", event_id=1),
            event=event,
            replay_of_event_id=None if replay is None else event.id,
            replay=replay,
        )
        workflow_id = dispatch_workflow_id("demo", binding.trigger_id, event.id, replay)
        if passed is not None:
            await log.append(
                predicate_evaluated(
                    request, passed=passed, reason=None, latency_ms=3, now_ms=self.at_ms
                ),
                key=trigger_key(workflow_id),
            )
        for attempt, name in enumerate([*outcomes, *(["begun"] if begun else [])], start=1):
            await log.append(
                started(request, attempt, workflow_id=workflow_id, now_ms=self.at_ms),
                key=start_key(workflow_id, "0a1b", attempt),
            )
            if name in self.outcomes:
                await log.append(
                    ended(
                        request,
                        self.outcomes[name],
                        started_at_ms=self.at_ms,
                        now_ms=self.at_ms,
                        workflow_id=workflow_id,
                    ),
                    key=end_key(workflow_id, attempt),
                )


@pytest.fixture(params=["sqlite", "file"])
def world(
    request: pytest.FixtureRequest, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> World:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HARN_")}
    environment = kept | {"HARN_EVENT_LOG_BACKEND": request.param}
    settings = StoreSettings.from_environment(tmp_path, environment)
    return World(settings, capsys, environment, tmp_path)

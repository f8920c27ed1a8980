"""The whole of what a dispatch appends, literally."""

from __future__ import annotations

from typing import Any

import pytest

from harn_temporal import headers
from harn_temporal.dispatch_records import (
    attempt_payload,
    cancelled,
    ended,
    predicate_evaluated,
    skipped,
    started,
    verdict,
)

WORKFLOW = "dispatch/triage/new-issue/trigger_evt_1"
ADDRESS = "trigger.inbox.envelopes/1"
BINDING = "new-issue@v2"
EVENT = "trigger_evt_1"
T0 = 1_767_323_045_000  # 2026-01-02T03:04:05Z
BASE = {
    "event_id": EVENT,
    "trace_id": "trace_1",
    "provider": "github",
    "kind": "issues.opened",
    "trigger_id": "new-issue",
    "binding_key": BINDING,
    "handler_kind": "local",
}
GRAPH = {"trace_id": "trace_1", "event_id": EVENT}
TARGET = {"handler_kind": "local", "target_uri": "handlers::on_issue"}


def rows(batch) -> list[tuple[str, str, Any, dict[str, str]]]:
    return [(append.topic, append.kind, append.payload, dict(append.headers)) for append in batch]


def graph(nodes, edges, **context) -> tuple[str, str, Any, dict[str, str]]:
    payload = {
        "source": "dispatcher",
        "trace_id": "trace_1",
        "event_id": EVENT,
        "observability": {
            "schema_version": 1,
            "action_graph_nodes": nodes,
            "action_graph_edges": edges,
        },
        "context": {
            "source": "dispatcher",
            "trigger_id": "new-issue",
            "binding_key": BINDING,
            "event_id": EVENT,
            **context,
            "replay_of_event_id": None,
        },
    }
    return ("observability.action_graph", "action_graph_update", payload, GRAPH)


def node(  # noqa: PLR0917 - a row of a table, in the order of its columns
    node_id, label, kind, status, outcome, metadata
) -> dict[str, Any]:
    return {
        "id": node_id,
        "label": label,
        "kind": kind,
        "status": status,
        "outcome": outcome,
        "trace_id": "trace_1",
        "stage_id": None,
        "node_id": None,
        "worker_id": None,
        "run_id": None,
        "run_path": None,
        "metadata": metadata,
    }


def edge(from_id, to_id, kind, label=None) -> dict[str, Any]:
    return {"from_id": from_id, "to_id": to_id, "kind": kind, "label": label}


def attempt_node(attempt, status, outcome, **metadata) -> dict[str, Any]:
    return node(
        f"dispatch:{BINDING}:{EVENT}:{attempt}",
        "handlers::on_issue",
        "dispatch",
        status,
        outcome,
        {
            **TARGET,
            "attempt": attempt,
            "trigger_id": "new-issue",
            "event_id": EVENT,
            **metadata,
        },
    )


TRIGGER_NODE = node(
    f"trigger:{EVENT}",
    "github:issues.opened",
    "trigger",
    "received",
    "received",
    {
        "provider": "github",
        "event_kind": "issues.opened",
        "dedupe_key": "delivery-1",
        "signature_status": "unsigned",
    },
)


def lifecycle(kind, payload) -> tuple[str, str, Any, dict[str, str]]:
    return ("triggers.lifecycle", kind, payload, BASE)


def outbox(kind, attempt, payload, **ours) -> tuple[str, str, Any, dict[str, str]]:
    extra = {"harn_temporal.workflow_id": WORKFLOW}
    extra |= {f"harn_temporal.{name}": value for name, value in ours.items()}
    return ("trigger.outbox", kind, payload, {**BASE, "attempt": str(attempt), **extra})


def lifecycle_payload(attempt, **found) -> dict[str, Any]:
    return {
        "event_id": EVENT,
        "attempt": attempt,
        **TARGET,
        **found,
        "replay_of_event_id": None,
    }


def outbox_payload(attempt, **found) -> dict[str, Any]:
    return {
        "event_id": EVENT,
        "attempt": attempt,
        "trigger_id": "new-issue",
        "binding_key": BINDING,
        **TARGET,
        **found,
        "replay_of_event_id": None,
    }


def attempt_recorded(attempt, outcome, error, started_at, completed_at) -> dict[str, Any]:
    return {
        "trigger_id": "new-issue",
        "binding_key": BINDING,
        "event_id": EVENT,
        "attempt": attempt,
        "handler_kind": "local",
        "started_at": started_at,
        "completed_at": completed_at,
        "outcome": outcome,
        "error_msg": error,
    }


def expected_start(attempt, *entry) -> list[tuple[str, str, Any, dict[str, str]]]:
    return [
        lifecycle("DispatchStarted", lifecycle_payload(attempt)),
        outbox("dispatch_started", attempt, outbox_payload(attempt), event=ADDRESS),
        graph(
            [attempt_node(attempt, "running", f"attempt_{attempt}")],
            [edge(entry[0], f"dispatch:{BINDING}:{EVENT}:{attempt}", *entry[1:])],
            attempt=attempt,
            **TARGET,
        ),
    ]


def expected_failure(attempt, at, **ours) -> list[tuple[str, str, Any, dict[str, str]]]:
    second = f"2026-01-02T03:04:{at:02d}"
    recorded = attempt_recorded(attempt, "failed", "boom", f"{second}.000Z", f"{second}.250Z")
    return [
        (
            "trigger.attempts",
            "attempt_recorded",
            recorded,
            {**BASE, "attempt": str(attempt)},
        ),
        lifecycle("DispatchFailed", lifecycle_payload(attempt, error="boom")),
        outbox(
            "dispatch_failed",
            attempt,
            outbox_payload(attempt, error="boom"),
            error_class="handler_panic",
            **ours,
        ),
        graph(
            [attempt_node(attempt, "failed", "failed", error="boom")],
            [],
            attempt=attempt,
            **TARGET,
            error="boom",
        ),
    ]


def expected_retry(failed) -> list[tuple[str, str, Any, dict[str, str]]]:
    following = failed + 1
    return [
        graph(
            [
                node(
                    f"retry:{BINDING}:{EVENT}:{failed}",
                    "retry in 1500ms",
                    "retry",
                    "scheduled",
                    f"attempt_{following}",
                    {
                        "trigger_id": "new-issue",
                        "event_id": EVENT,
                        "attempt": following,
                        "delay_ms": 1500,
                        "error": "boom",
                    },
                )
            ],
            [
                edge(
                    f"dispatch:{BINDING}:{EVENT}:{failed}",
                    f"retry:{BINDING}:{EVENT}:{failed}",
                    "retry",
                    f"attempt {following}",
                )
            ],
            attempt=following,
            delay_ms=1500,
        ),
        lifecycle(
            "RetryScheduled",
            {
                "event_id": EVENT,
                "attempt": following,
                "delay_ms": 1500,
                "error": "boom",
                "replay_of_event_id": None,
            },
        ),
        (
            "trigger.attempts",
            "retry_scheduled",
            {
                "event_id": EVENT,
                "attempt": following,
                "trigger_id": "new-issue",
                "binding_key": BINDING,
                "delay_ms": 1500,
                "error": "boom",
                "replay_of_event_id": None,
            },
            {**BASE, "attempt": str(following)},
        ),
    ]


def fail(request, attempt, history=()) -> list[tuple[str, str, Any, dict[str, str]]]:
    at = T0 + attempt * 1000
    return rows(
        ended(
            request,
            verdict(request.binding, attempt, "failed", error="boom"),
            started_at_ms=at,
            now_ms=at + 250,
            workflow_id=WORKFLOW,
            history=history,
        )
    )


def start(request, attempt) -> list[tuple[str, str, Any, dict[str, str]]]:
    return rows(started(request, attempt, workflow_id=WORKFLOW, now_ms=T0))


def test_a_dispatch_that_fails_twice_and_then_succeeds(make_request) -> None:
    request = make_request()
    result = {"ok": True, "n": None}
    found = [
        *start(request, 1),
        *fail(request, 1),
        *start(request, 2),
        *fail(request, 2),
        *start(request, 3),
        *rows(
            ended(
                request,
                verdict(request.binding, 3, "success", result=result),
                started_at_ms=T0 + 8000,
                now_ms=T0 + 9007,
                workflow_id=WORKFLOW,
            )
        ),
    ]
    assert found == [
        graph([TRIGGER_NODE], []),
        *expected_start(1, f"trigger:{EVENT}", "trigger_dispatch"),
        *expected_failure(1, 6),
        *expected_retry(1),
        *expected_start(2, f"retry:{BINDING}:{EVENT}:1", "retry", "attempt 2"),
        *expected_failure(2, 7),
        *expected_retry(2),
        *expected_start(3, f"retry:{BINDING}:{EVENT}:2", "retry", "attempt 3"),
        (
            "trigger.attempts",
            "attempt_recorded",
            attempt_recorded(
                3, "success", None, "2026-01-02T03:04:13.000Z", "2026-01-02T03:04:14.007Z"
            ),
            {**BASE, "attempt": "3"},
        ),
        lifecycle("DispatchSucceeded", lifecycle_payload(3, result=result)),
        outbox("dispatch_succeeded", 3, outbox_payload(3, result=result), outcome="succeeded"),
        graph([attempt_node(3, "completed", "success")], [], attempt=3, **TARGET, result=result),
    ]


def test_a_dispatch_that_ends_as_a_dead_letter(make_request, event_json) -> None:
    request = make_request()
    history = [
        attempt_payload(
            request,
            verdict(request.binding, attempt, "failed", error="boom"),
            started_at_ms=T0 + attempt * 1000,
            now_ms=T0 + attempt * 1000 + 250,
        )
        for attempt in (1, 2)
    ]
    found = fail(request, 3, history)
    entry = found[-1][2]
    assert entry["id"].startswith("dlq_01")
    attempts = [
        attempt_recorded(
            attempt,
            "failed",
            "boom",
            f"2026-01-02T03:04:0{5 + attempt}.000Z",
            f"2026-01-02T03:04:0{5 + attempt}.250Z",
        )
        for attempt in (1, 2, 3)
    ]
    assert found == [
        *expected_failure(3, 8, outcome="dlq"),
        graph(
            [
                node(
                    f"dlq:{BINDING}:{EVENT}",
                    "new-issue",
                    "dlq",
                    "queued",
                    "retry_exhausted",
                    {"attempt_count": 3, "final_error": "boom"},
                )
            ],
            [
                edge(
                    f"dispatch:{BINDING}:{EVENT}:3",
                    f"dlq:{BINDING}:{EVENT}",
                    "dlq_move",
                    "3 attempts",
                )
            ],
            attempt_count=3,
            final_error="boom",
        ),
        lifecycle(
            "DlqMoved",
            {
                "event_id": EVENT,
                "attempt_count": 3,
                "final_error": "boom",
                "replay_of_event_id": None,
            },
        ),
        (
            "trigger.dlq",
            "dlq_moved",
            {
                "trigger_id": "new-issue",
                "binding_key": BINDING,
                "event": event_json,
                "attempt_count": 3,
                "final_error": "boom",
                "error_class": "handler_panic",
                "attempts": attempts,
            },
            {**BASE, "attempt": "3"},
        ),
        (
            "trigger.dlq",
            "dlq_entry",
            {
                "id": entry["id"],
                "event_id": EVENT,
                "binding_id": "new-issue",
                "binding_version": 2,
                "provider": "github",
                "kind": "issues.opened",
                "state": "pending",
                "error": "boom",
                "error_class": "handler_panic",
                "event": event_json,
                "retry_history": [
                    {
                        "attempt": attempt,
                        "at": f"2026-01-02T03:04:0{5 + attempt}.250Z",
                        "status": "failed",
                        "error": "boom",
                    }
                    for attempt in (1, 2, 3)
                ],
            },
            {},
        ),
    ]


def one_attempt(request, status) -> list[tuple[str, str, Any, dict[str, str]]]:
    return rows(
        ended(
            request,
            verdict(request.binding, 1, status, error="not now"),
            started_at_ms=T0,
            now_ms=T0,
            workflow_id=WORKFLOW,
        )
    )


@pytest.mark.parametrize(
    ("status", "node_status", "ours"),
    [
        ("denied", "failed", {"outcome": "failed", "error_class": "auth_failed"}),
        ("cancelled", "cancelled", {"outcome": "cancelled"}),
    ],
)
def test_an_attempt_that_ends_its_dispatch_without_a_dead_letter(
    make_request, status, node_status, ours
) -> None:
    moment = "2026-01-02T03:04:05.000Z"
    assert one_attempt(make_request(), status) == [
        (
            "trigger.attempts",
            "attempt_recorded",
            attempt_recorded(1, status, "not now", moment, moment),
            {**BASE, "attempt": "1"},
        ),
        lifecycle("DispatchFailed", lifecycle_payload(1, error="not now")),
        outbox("dispatch_failed", 1, outbox_payload(1, error="not now"), **ours),
        graph(
            [attempt_node(1, node_status, status, error="not now")],
            [],
            attempt=1,
            **TARGET,
            error="not now",
        ),
    ]


def test_an_attempt_that_waits(make_request) -> None:
    moment = "2026-01-02T03:04:05.000Z"
    assert one_attempt(make_request(), "waiting") == [
        (
            "trigger.attempts",
            "attempt_recorded",
            attempt_recorded(1, "waiting", "not now", moment, moment),
            {**BASE, "attempt": "1"},
        ),
        lifecycle("DispatchWaiting", lifecycle_payload(1, message="not now")),
        outbox("dispatch_waiting", 1, outbox_payload(1, message="not now"), outcome="waiting"),
        graph(
            [attempt_node(1, "waiting", "waiting", error="not now")],
            [],
            attempt=1,
            **TARGET,
            message="not now",
        ),
    ]


def test_a_predicate_that_says_no(make_request, make_binding) -> None:
    source = "event.kind == 'x'"
    request = make_request(make_binding(when=source))
    found = rows(
        [
            *predicate_evaluated(request, passed=False, reason=None, latency_ms=7, now_ms=T0),
            *skipped(
                request,
                "predicate",
                {"predicate": source, "reason": None},
                workflow_id=WORKFLOW,
                now_ms=T0,
            ),
        ]
    )
    assert found == [
        graph([TRIGGER_NODE], []),
        lifecycle(
            "predicate.evaluated",
            {
                "trigger_id": "new-issue",
                "event_id": EVENT,
                "predicate": source,
                "result": False,
                "reason": None,
                "latency_ms": 7,
                "replay_of_event_id": None,
            },
        ),
        graph(
            [
                node(
                    f"predicate:{BINDING}:{EVENT}",
                    source,
                    "predicate",
                    "completed",
                    "false",
                    {
                        "trigger_id": "new-issue",
                        "event_id": EVENT,
                        "predicate": source,
                        "result": False,
                        "reason": None,
                        "latency_ms": 7,
                    },
                )
            ],
            [edge(f"trigger:{EVENT}", f"predicate:{BINDING}:{EVENT}", "trigger_dispatch")],
            predicate=source,
            reason=None,
            latency_ms=7,
        ),
        (
            "trigger.outbox",
            "dispatch_skipped",
            {
                "event_id": EVENT,
                "trigger_id": "new-issue",
                "binding_key": BINDING,
                **TARGET,
                "skip_stage": "predicate",
                "detail": {"predicate": source, "reason": None},
                "replay_of_event_id": None,
            },
            {
                **BASE,
                "harn_temporal.workflow_id": WORKFLOW,
                "harn_temporal.outcome": "skipped",
            },
        ),
    ]


def test_the_first_attempt_behind_a_predicate_joins_its_node(make_request, make_binding) -> None:
    request = make_request(make_binding(when="true"))
    assert start(request, 1) == expected_start(
        1, f"predicate:{BINDING}:{EVENT}", "predicate_gate", "true"
    )


def test_a_dispatch_cancelled_in_a_retry_wait(make_request) -> None:
    found = rows(cancelled(make_request(), 2, error="by ada", workflow_id=WORKFLOW, now_ms=T0))
    assert found == [
        lifecycle("DispatchFailed", lifecycle_payload(3, error="by ada")),
        outbox("dispatch_failed", 3, outbox_payload(3, error="by ada"), outcome="cancelled"),
        graph(
            [attempt_node(3, "cancelled", "cancelled", error="by ada")],
            [
                edge(
                    f"retry:{BINDING}:{EVENT}:2",
                    f"dispatch:{BINDING}:{EVENT}:3",
                    "retry",
                    "attempt 3",
                )
            ],
            attempt=3,
            **TARGET,
            error="by ada",
        ),
    ]


def test_a_dispatch_cancelled_before_it_began_has_its_trigger_node(make_request) -> None:
    found = rows(cancelled(make_request(), 0, error="x", workflow_id=WORKFLOW, now_ms=T0))
    assert found[0] == graph([TRIGGER_NODE], [])
    assert [kind for _, kind, _, _ in found[1:]] == [
        "DispatchFailed",
        "dispatch_failed",
        "action_graph_update",
    ]


def test_a_tenant_has_topics_of_its_own_and_shares_the_others(make_request) -> None:
    request = make_request(tenant_id="acme")
    batch = [
        *started(request, 1, workflow_id=WORKFLOW, now_ms=T0),
        *ended(
            request,
            verdict(request.binding, 1, "failed", error="boom"),
            started_at_ms=T0,
            now_ms=T0,
            workflow_id=WORKFLOW,
        ),
        *ended(
            request,
            verdict(request.binding, 3, "failed", error="boom"),
            started_at_ms=T0,
            now_ms=T0,
            workflow_id=WORKFLOW,
        ),
        *skipped(request, "flow_control", {}, workflow_id=WORKFLOW, now_ms=T0),
    ]
    assert {(append.topic, append.kind) for append in batch} == {
        ("observability.action_graph", "action_graph_update"),
        ("tenant.acme.triggers.lifecycle", "DispatchStarted"),
        ("tenant.acme.triggers.lifecycle", "DispatchFailed"),
        ("tenant.acme.triggers.lifecycle", "RetryScheduled"),
        ("tenant.acme.triggers.lifecycle", "DlqMoved"),
        ("tenant.acme.trigger.outbox", "dispatch_started"),
        ("tenant.acme.trigger.outbox", "dispatch_failed"),
        ("tenant.acme.trigger.outbox", "dispatch_skipped"),
        ("tenant.acme.trigger.attempts", "attempt_recorded"),
        ("tenant.acme.trigger.attempts", "retry_scheduled"),
        ("tenant.acme.trigger.dlq", "dlq_moved"),
        ("trigger.dlq", "dlq_entry"),
    }
    for append in batch:
        has_tenant = append.headers.get("tenant_id")
        assert has_tenant == ("acme" if append.topic.startswith("tenant.") else None)


def test_a_replay_is_linked_to_its_original(make_request) -> None:
    request = make_request(replay_of_event_id="trigger_evt_0")
    first, *others = started(request, 1, workflow_id=WORKFLOW, now_ms=T0)
    found = first.payload["observability"]
    original = {
        **TRIGGER_NODE,
        "id": "trigger:trigger_evt_0",
        "label": "github:issues.opened (original trigger_evt_0)",
        "status": "historical",
        "outcome": "replayed_from",
    }
    assert found["action_graph_nodes"] == [original, TRIGGER_NODE]
    assert found["action_graph_edges"] == [
        edge("trigger:trigger_evt_0", f"trigger:{EVENT}", "replay_chain", "replay chain")
    ]
    assert dict(first.headers) == GRAPH
    for append in others[:2]:
        assert append.headers["replay_of_event_id"] == "trigger_evt_0"
        assert append.payload["replay_of_event_id"] == "trigger_evt_0"


def test_an_a2a_hop_and_an_enqueued_job_have_nodes_of_their_kind(
    make_request, make_binding
) -> None:
    hop = make_request(make_binding("a2a://reviewer.prod/triage", kind="a2a"))
    update = started(hop, 1, workflow_id=WORKFLOW, now_ms=T0)[-1].payload["observability"]
    (found,) = update["action_graph_nodes"]
    assert (found["id"], found["kind"]) == (f"a2a:{BINDING}:{EVENT}:1", "a2a_hop")
    assert (found["label"], found["metadata"]["target_agent"]) == ("triage", "triage")
    assert update["action_graph_edges"][0]["kind"] == "a2a_dispatch"

    job = make_request(make_binding("worker://q", kind="worker"))
    receipt = {"queue": "q", "job_event_id": 5, "response_topic": "worker.q.responses"}
    batch = ended(
        job,
        verdict(job.binding, 1, "success", result=receipt),
        started_at_ms=T0,
        now_ms=T0,
        workflow_id=WORKFLOW,
    )
    (found,) = batch[-1].payload["observability"]["action_graph_nodes"]
    assert (found["kind"], found["outcome"]) == ("worker_enqueue", "enqueued")
    assert found["metadata"]["queue_name"] == "q"
    assert found["metadata"]["job_event_id"] == 5
    assert found["metadata"]["response_topic"] == "worker.q.responses"


def test_a_request_without_its_event_is_refused(make_request) -> None:
    request = make_request().model_copy(update={"event": None})
    with pytest.raises(ValueError, match="does not carry the event"):
        started(request, 1, workflow_id=WORKFLOW, now_ms=T0)


def test_every_record_has_the_time_it_was_given(make_request) -> None:
    batch = started(make_request(), 1, workflow_id=WORKFLOW, now_ms=T0)
    assert {append.occurred_at_ms for append in batch} == {T0}


def test_our_headers_have_the_names_the_store_folds() -> None:
    assert headers.WORKFLOW_ID == "harn_temporal.workflow_id"
    assert headers.OUTCOME == "harn_temporal.outcome"

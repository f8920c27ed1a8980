"""A trace has one id from the sender to the handler, across processes and retries."""

from __future__ import annotations

import json
import time

import pytest
from opentelemetry.trace import SpanKind, StatusCode

from harn_temporal.a2a.client import HopAnswer
from harn_temporal.a2a.tracing import trace_headers
from harn_temporal.activities.a2a_hop import AgentHop
from harn_temporal.activities.interruption import Interruption
from harn_temporal.bindings import Binding, HandlerTarget
from harn_temporal.contracts import DispatchRequest, EventAddress
from harn_temporal.eventlog.topics import INBOX_ENVELOPES, queue_topic
from harn_temporal.events import new_event
from harn_temporal.operations.replay import append_replay
from harn_temporal.registry import register
from harn_temporal.telemetry import tracing
from harn_temporal.telemetry.dispatch_spans import dispatch_span
from harn_temporal.trace_ids import parse_traceparent, w3c_trace_id
from harn_temporal.worker import WorkerOptions, running_worker

LIB = """
import json
from pathlib import Path

HERE = Path(__file__).parent


def _note(name):
    from opentelemetry import trace

    span = trace.get_current_span()
    context = span.get_span_context()
    (HERE / name).write_text(json.dumps([f"{context.trace_id:032x}", f"{context.span_id:016x}"]))


def plain(event):
    _note("plain.json")


async def flaky(event, context):
    _note(f"flaky{context.attempt}.json")
    if context.attempt < 2:
        raise ValueError("token=hunter2")


def asked(event):
    return True
"""
RETRY = 'retry = { max = 2, backoff = "linear", delay_ms = 30 }'
TRACE = "0af7651916cd43dd8448eb211c80319c"
SENDER = "b7ad6b7169203331"
TRACEPARENT = f"00-{TRACE}-{SENDER}-01"


@pytest.fixture
def package(make_package, trigger):
    return make_package(
        LIB,
        trigger("plain", "handlers::plain"),
        trigger("flaky", "handlers::flaky", RETRY, 'when = "handlers::asked"'),
        trigger("queued", "worker://triage"),
        trigger("doomed", "handlers::flaky", 'retry = { max = 1, backoff = "immediate" }'),
    )


def ids(span):
    return f"{span.context.trace_id:032x}", f"{span.context.span_id:016x}"


def parent(span):
    return None if span.parent is None else f"{span.parent.span_id:016x}"


def seen_by(package, name):
    return tuple(json.loads((package.folder / name).read_text()))


@pytest.fixture
def dispatched(temporal_client, package, log, ended):
    async def run(count=1):
        async with running_worker(temporal_client, log, package.manifest, WorkerOptions()):
            await ended(count)

    return run


async def test_a_trace_is_whole_from_the_sender_to_the_handler(package, log, spans, dispatched):
    await package.ingest("flaky", headers={"Traceparent": TRACEPARENT})
    await dispatched()
    found = {}
    for span in spans.get_finished_spans():
        found.setdefault(span.name, []).append(span)
    assert {ids(span)[0] for each in found.values() for span in each} == {TRACE}
    [ingest], [append], [admit], [predicate] = (
        found[name] for name in ("harn.ingest", "harn.append", "harn.admit", "harn.predicate")
    )
    first, second = found["harn.attempt"]
    assert parent(ingest) == SENDER
    assert parent(append) == ids(ingest)[1]
    assert parent(admit) == ids(append)[1]
    assert parent(predicate) == parent(first) == parent(second) == ids(admit)[1]
    assert seen_by(package, "flaky1.json") == ids(first)
    assert seen_by(package, "flaky2.json") == ids(second)
    [envelope] = await log.read(INBOX_ENVELOPES)
    assert parse_traceparent(envelope.headers["traceparent"])[:2] == ids(append)

    assert first.status.status_code is StatusCode.ERROR
    assert first.status.description == "handler_panic"
    assert [(each.name, dict(each.attributes)) for each in first.events] == [
        ("retry_scheduled", {"harn.delay_ms": 30})
    ]
    assert second.status.status_code is StatusCode.UNSET
    assert dict(second.attributes) == {
        "harn.event_id": envelope.headers["event_id"],
        "harn.trace_id": envelope.headers["trace_id"],
        "harn.trigger_id": "flaky",
        "harn.binding_key": "flaky@v1",
        "harn.handler_kind": "local",
        "harn.attempt": 2,
        "harn.outcome": "success",
    }
    assert predicate.attributes["harn.passed"] is True
    assert "hunter2" not in str([span.to_json() for span in spans.get_finished_spans()])


async def test_without_a_sender_the_trace_follows_from_the_event(package, spans, dispatched):
    event, _ = await package.ingest("plain")
    await dispatched()
    found = {span.name: span for span in spans.get_finished_spans()}
    assert {ids(span)[0] for span in found.values()} == {w3c_trace_id(event.trace_id)}
    assert w3c_trace_id(event.trace_id) == event.trace_id.removeprefix("trace_").replace("-", "")
    assert found["harn.ingest"].parent is None
    assert seen_by(package, "plain.json") == ids(found["harn.attempt"])


async def test_who_ingests_without_tracing_is_joined_by_the_event_id(
    package, log, spans, dispatched
):
    tracer = tracing._Installed.tracer
    tracing.install(None)
    event, _ = await package.ingest("plain")
    await package.ingest("plain", headers={"traceparent": TRACEPARENT})
    await package.ingest("plain", headers={"traceparent": "not one"})
    tracing.install(tracer)
    envelopes = await log.read(INBOX_ENVELOPES)
    assert [each.headers.get("traceparent") for each in envelopes] == [None, TRACEPARENT, None]
    await dispatched(3)
    admitted = [span for span in spans.get_finished_spans() if span.name == "harn.admit"]
    traces = {(ids(span)[0], parent(span)) for span in admitted}
    assert len(traces) == 3
    assert {(w3c_trace_id(event.trace_id), None), (TRACE, SENDER)} < traces


async def test_a_sender_that_does_not_sample_is_not_exported(package, log, spans, dispatched):
    unsampled = TRACEPARENT[:-2] + "00"
    await package.ingest("plain", headers={"traceparent": unsampled})
    await dispatched()
    assert spans.get_finished_spans() == ()
    assert seen_by(package, "plain.json")[0] == TRACE


async def test_a_job_carries_the_trace_of_its_attempt(package, log, spans, dispatched):
    await package.ingest("queued", headers={"traceparent": TRACEPARENT})
    await dispatched()
    [attempt] = [span for span in spans.get_finished_spans() if span.name == "harn.attempt"]
    [job] = await log.read(queue_topic("triage"))
    assert parse_traceparent(job.headers["traceparent"])[:2] == ids(attempt)


@pytest.mark.parametrize("headers", [{}, {"traceparent": TRACEPARENT}])
async def test_a_replay_joins_the_trace_of_what_it_replays(
    package, log, spans, dispatched, headers
):
    event, _ = await package.ingest("plain", headers=headers)
    bindings = await register(log, "demo", package.manifest.bindings)
    await append_replay(log, bindings[0], event)
    await dispatched(2)
    attempts = [span for span in spans.get_finished_spans() if span.name == "harn.attempt"]
    first, again = sorted(
        attempts, key=lambda span: "harn.replay_of_event_id" in (span.attributes or {})
    )
    assert again.attributes["harn.replay_of_event_id"] == event.id
    assert ids(first)[0] == ids(again)[0]


async def test_a_dead_letter_is_an_event_of_its_attempt(package, spans, dispatched):
    await package.ingest("doomed")
    await dispatched()
    [attempt] = [span for span in spans.get_finished_spans() if span.name == "harn.attempt"]
    assert [(each.name, dict(each.attributes)) for each in attempt.events] == [
        ("dlq_moved", {"harn.attempts": 1})
    ]


async def test_a_duplicate_is_told(package, spans):
    await package.ingest("plain", dedupe_key="one")
    await package.ingest("plain", dedupe_key="one")
    appends = [span for span in spans.get_finished_spans() if span.name == "harn.append"]
    assert [span.attributes["harn.status"] for span in appends] == ["accepted", "duplicate"]


async def test_a_hop_is_a_span_that_the_agent_is_sent(spans):
    class Agent:
        async def send(self, peer, message, *, wait, within_s):
            sent.append(trace_headers(message.trace_id, message.event["headers"]))
            return HopAnswer(result="done")

    sent = []
    event = new_event(provider="shop", kind="far", payload={}, headers={"traceparent": TRACEPARENT})
    request = DispatchRequest(
        store_id="store",
        binding=Binding(
            trigger_id="far",
            package="demo",
            kind="webhook",
            provider="shop",
            handler=HandlerTarget(kind="a2a", uri="a2a://agent/review"),
            fingerprint="far",
        ),
        event_id=event.id,
        trace_id=event.trace_id,
        address=EventAddress(topic=INBOX_ENVELOPES, event_id=1),
        event=event,
    )
    with dispatch_span(tracing.ATTEMPT, request, attempt=1):
        end = await AgentHop(Agent(), interruption=lambda: Interruption.GONE).send(request)
    hop, attempt = spans.get_finished_spans()
    assert end.result == "done"
    assert (hop.name, hop.kind, parent(hop)) == ("harn.a2a_hop", SpanKind.CLIENT, ids(attempt)[1])
    assert dict(hop.attributes) == {
        "harn.target_uri": "a2a://agent/review",
        "harn.outcome": "completed",
    }
    assert parse_traceparent(sent[0]["traceparent"])[:2] == ids(hop)
    assert (ids(attempt)[0], parent(attempt)) == (TRACE, SENDER)


def test_an_agent_is_sent_the_current_span(spans):
    with tracing.span(tracing.HOP, attributes={}, traceparent=TRACEPARENT) as span:
        sent = trace_headers("trace_x", {})
        assert sent["traceparent"] == span.traceparent
    assert parse_traceparent(sent["traceparent"])[0] == TRACE


def test_an_exception_marks_its_span_by_its_type_alone(spans):
    with (
        pytest.raises(ValueError, match="hunter2"),
        tracing.span(tracing.ATTEMPT, attributes={}),
    ):
        raise ValueError("hunter2")
    [span] = spans.get_finished_spans()
    assert (span.status.status_code, span.status.description) == (StatusCode.ERROR, "ValueError")
    assert span.events == ()


def test_without_a_tracer_spans_pass_on_what_they_were_given():
    with tracing.span(tracing.ATTEMPT, attributes={}, traceparent=TRACEPARENT) as span:
        assert span.traceparent == TRACEPARENT
        assert tracing.current_traceparent() is None
        span.set({"harn.outcome": "success"})
        span.event("retry_scheduled", {})
        span.fail("failed")


def test_fire_sends_its_spans_by_otlp(package, program, collector):
    done = program(
        "fire",
        "plain",
        "--header",
        f"traceparent={TRACEPARENT}",
        HARN_OTEL_ENDPOINT=collector.url,
        HARN_OTEL_HEADERS="x-tenant=acme;authorization=Bearer hunter2",
    )
    assert done.returncode == 0, done.stderr
    assert collector.paths == ["/v1/traces"]
    assert [span.name for span in collector.spans] == ["harn.append", "harn.ingest"]
    assert {span.trace_id.hex() for span in collector.spans} == {TRACE}
    assert collector.spans[1].parent_span_id.hex() == SENDER
    assert collector.services == {"harn-temporal"}
    assert collector.headers["x-tenant"] == "acme"
    assert "hunter2" not in done.stdout + done.stderr


async def test_what_another_process_ingested_is_one_trace_here(
    package, program, collector, spans, dispatched
):
    done = program(
        "fire", "plain", OTEL_EXPORTER_OTLP_ENDPOINT=collector.url, OTEL_SERVICE_NAME="shop"
    )
    assert done.returncode == 0, done.stderr
    assert collector.services == {"shop"}
    await dispatched()
    append, ingest = collector.spans
    found = {span.name: span for span in spans.get_finished_spans()}
    assert ids(found["harn.admit"])[0] == ingest.trace_id.hex()
    assert parent(found["harn.admit"]) == append.span_id.hex()
    assert seen_by(package, "plain.json") == ids(found["harn.attempt"])
    assert ids(found["harn.attempt"])[0] == ingest.trace_id.hex()


def test_a_collector_that_is_gone_costs_a_few_seconds_and_no_exit_code(package, program):
    began = time.monotonic()
    done = program("fire", "plain", HARN_OTEL_ENDPOINT="http://127.0.0.1:9")
    taken = time.monotonic() - began
    assert done.returncode == 0
    assert "accepted" in done.stdout
    assert "spans_lost" in done.stderr
    assert taken < 15


def test_a_wait_runs_the_handler_inside_the_exported_trace(
    package, program, collector, temporal_address
):
    done = program(
        "fire", "plain", "--wait", "--address", temporal_address, HARN_OTEL_ENDPOINT=collector.url
    )
    assert done.returncode == 0, done.stderr
    [attempt] = [span for span in collector.spans if span.name == "harn.attempt"]
    assert seen_by(package, "plain.json") == (attempt.trace_id.hex(), attempt.span_id.hex())
    assert {span.trace_id.hex() for span in collector.spans} == {attempt.trace_id.hex()}


def test_ids_that_hold_no_uuid_have_a_trace_all_the_same():
    assert w3c_trace_id("trace_" + "0" * 32) != "0" * 32
    assert len(w3c_trace_id("from somewhere")) == 32
    assert w3c_trace_id("from somewhere") == w3c_trace_id("from somewhere")


@pytest.mark.parametrize(
    "written",
    [None, "", "x", f"00-{'0' * 32}-{SENDER}-01", f"00-{TRACE}-{'0' * 16}-01", TRACEPARENT + "0"],
)
def test_what_is_no_traceparent_joins_nothing(written):
    assert parse_traceparent(written) is None

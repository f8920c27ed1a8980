"""Tracing by OpenTelemetry. Imported only where traces are exported."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib.metadata import version

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
from opentelemetry.trace import (
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
)

from harn_temporal.telemetry import tracing
from harn_temporal.telemetry.otel_settings import OtelSettings
from harn_temporal.trace_ids import parse_traceparent, w3c_trace_id

logger = logging.getLogger("harn_temporal.telemetry")

STOP_S = 3.0
"""What is left is sent within it at the end; a collector that is gone delays nobody longer."""

SCOPE = "harn_temporal"

_KINDS: dict[tracing.Kind, SpanKind] = {
    "internal": SpanKind.INTERNAL,
    "consumer": SpanKind.CONSUMER,
    "producer": SpanKind.PRODUCER,
    "client": SpanKind.CLIENT,
}
_begun: ContextVar[int | None] = ContextVar("harn_temporal_begun_trace", default=None)


class EventTraceIds(RandomIdGenerator):
    """Random ids, but for the trace that an event begins."""

    def generate_trace_id(self) -> int:
        begun = _begun.get()
        return super().generate_trace_id() if begun is None else begun


class OtelTracer:
    """Makes spans with a provider whose ids come from `EventTraceIds`."""

    def __init__(self, provider: TracerProvider) -> None:
        self._provider = provider
        self._tracer = provider.get_tracer(SCOPE, version("harn-temporal"))

    @contextmanager
    def span(
        self,
        name: str,
        *,
        kind: tracing.Kind,
        traceparent: str | None,
        trace_id: str | None,
        attributes: tracing.Attributes,
    ) -> Iterator[tracing.Span]:
        parent = _parent(traceparent, trace_id)
        begins = _begun.set(_begins(parent, trace_id))
        try:
            found = self._tracer.start_span(
                name, context=parent, kind=_KINDS[kind], attributes=dict(attributes)
            )
        finally:
            _begun.reset(begins)
        token = otel_context.attach(trace.set_span_in_context(found, parent))
        try:
            yield _Span(found)
        except BaseException as error:
            # Its type only: a message may hold anything, and the log has it anyway.
            found.set_status(Status(StatusCode.ERROR, type(error).__name__))
            raise
        finally:
            otel_context.detach(token)
            found.end()

    def current_traceparent(self) -> str | None:
        return _written(trace.get_current_span().get_span_context())

    def stop(self) -> None:
        """Shutting down waits for the collector; the thread is left behind when time is up."""
        thread = threading.Thread(target=self._provider.shutdown, daemon=True)
        thread.start()
        thread.join(STOP_S)
        if thread.is_alive():
            logger.warning("spans_lost", extra={"bound_s": STOP_S})


class _Span:
    def __init__(self, span: trace.Span) -> None:
        self._span = span

    @property
    def traceparent(self) -> str | None:
        return _written(self._span.get_span_context())

    def set(self, attributes: tracing.Attributes) -> None:
        self._span.set_attributes(dict(attributes))

    def event(self, name: str, attributes: tracing.Attributes) -> None:
        self._span.add_event(name, dict(attributes))

    def fail(self, what: str) -> None:
        self._span.set_status(Status(StatusCode.ERROR, what))


def start(settings: OtelSettings) -> None:
    """Trace this process, and export what handlers trace by the global tracer provider too."""
    exporter = OTLPSpanExporter(
        endpoint=settings.endpoint, headers=None if not settings.headers else dict(settings.headers)
    )
    sampler = None
    if settings.sample_ratio is not None:
        sampler = ParentBased(TraceIdRatioBased(settings.sample_ratio))
    provider = TracerProvider(
        sampler=sampler,
        resource=Resource.create(
            {SERVICE_NAME: settings.service, SERVICE_VERSION: version("harn-temporal")}
        ),
        id_generator=EventTraceIds(),
        shutdown_on_exit=False,
    )
    provider.add_span_processor(BatchSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    tracing.install(OtelTracer(provider))


def _parent(traceparent: str | None, trace_id: str | None) -> Context:
    """The context that a span is made in; an empty one where it begins a trace."""
    joined = parse_traceparent(traceparent)
    if joined is not None:
        found, span_id, flags = joined
        remote = SpanContext(
            int(found, 16), int(span_id, 16), is_remote=True, trace_flags=TraceFlags(int(flags, 16))
        )
        return trace.set_span_in_context(NonRecordingSpan(remote), Context())
    return otel_context.get_current() if trace_id is None else Context()


def _begins(parent: Context, trace_id: str | None) -> int | None:
    has_parent = trace.get_current_span(parent).get_span_context().is_valid
    return None if trace_id is None or has_parent else int(w3c_trace_id(trace_id), 16)


def _written(context: SpanContext) -> str | None:
    if not context.is_valid:
        return None
    flags = int(context.trace_flags)
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{flags:02x}"

"""Spans, where a trace is exported; where none is, everything here costs nothing.

OpenTelemetry is imported by `harn_temporal.telemetry.otel`, and only once it is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Final, Literal, Protocol

Kind = Literal["internal", "consumer", "producer", "client"]
Attributes = Mapping[str, str | int | bool]

INGEST: Final = "harn.ingest"
APPEND: Final = "harn.append"
ADMIT: Final = "harn.admit"
PREDICATE: Final = "harn.predicate"
ATTEMPT: Final = "harn.attempt"
HOP: Final = "harn.a2a_hop"

SPANS: Mapping[str, str] = {
    INGEST: "An event is taken in: matched, filtered, and appended for each binding",
    APPEND: "Its dedupe claim and its envelope become durable; the envelope carries this span",
    ADMIT: "The pump starts the dispatch of an envelope",
    PREDICATE: "`when` is asked",
    ATTEMPT: "One attempt, with the handler inside; its events tell what follows",
    HOP: "The event is sent to an A2A agent, whose `traceparent` is this span",
}
EVENTS: Mapping[str, str] = {
    "retry_scheduled": "With `harn.delay_ms`: the attempt failed and another one follows",
    "dlq_moved": "The attempt failed and was the last: the dispatch is a dead letter",
}


class Span(Protocol):
    @property
    def traceparent(self) -> str | None:
        """What a next step joins this span by; without tracing, what this one was given."""

    def set(self, attributes: Attributes) -> None: ...

    def event(self, name: str, attributes: Attributes) -> None: ...

    def fail(self, what: str) -> None:
        """Mark it as failed. `what` is a word of ours, never a message that may hold secrets."""


class Tracer(Protocol):
    def span(
        self,
        name: str,
        *,
        kind: Kind,
        traceparent: str | None,
        trace_id: str | None,
        attributes: Attributes,
    ) -> AbstractContextManager[Span]: ...

    def current_traceparent(self) -> str | None: ...

    def stop(self) -> None:
        """Send what is left, within a bound."""


class _NoSpan:
    def __init__(self, traceparent: str | None) -> None:
        self.traceparent = traceparent

    def set(self, attributes: Attributes) -> None:
        """Nobody looks."""

    def event(self, name: str, attributes: Attributes) -> None:
        """Nobody looks."""

    def fail(self, what: str) -> None:
        """Nobody looks."""


class _Installed:
    tracer: Tracer | None = None


def install(tracer: Tracer | None) -> None:
    """The tracer of this process; None for no tracing."""
    _Installed.tracer = tracer


@contextmanager
def span(
    name: str,
    *,
    attributes: Attributes,
    kind: Kind = "internal",
    traceparent: str | None = None,
    trace_id: str | None = None,
) -> Iterator[Span]:
    """A span around the block, which is the current one inside it.

    It joins `traceparent`; without a usable one it begins the trace of `trace_id`, an event's own,
    whose id follows from it; without either it is a child of the current span. An exception that
    leaves the block marks it as failed.
    """
    tracer = _Installed.tracer
    if tracer is None:
        yield _NoSpan(traceparent)
        return
    with tracer.span(
        name, kind=kind, traceparent=traceparent, trace_id=trace_id, attributes=attributes
    ) as found:
        yield found


def current_traceparent() -> str | None:
    """Of the current span; None without tracing or outside of any."""
    tracer = _Installed.tracer
    return None if tracer is None else tracer.current_traceparent()


def stop() -> None:
    """Send what is left, within a bound, and end tracing in this process."""
    tracer, _Installed.tracer = _Installed.tracer, None
    if tracer is not None:
        tracer.stop()

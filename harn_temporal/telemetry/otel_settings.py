"""Where traces are sent: Harn's variables first, then the standard ones. Nothing is imported here.

Harn's: HARN_OTEL_ENDPOINT, HARN_OTEL_SERVICE_NAME, HARN_OTEL_HEADERS, HARN_OTEL_SAMPLE_RATIO.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from harn_temporal.errors import UsageError

DEFAULT_SERVICE = "harn-temporal"
TRACES_PATH = "/v1/traces"

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_PROTOCOL = "http/protobuf"


@dataclass(frozen=True, slots=True)
class OtelSettings:
    """None where the standard variables decide, which the exporter reads by itself."""

    service: str
    endpoint: str | None = None
    headers: Mapping[str, str] | None = None
    sample_ratio: float | None = None


def read_otel_settings(environ: Mapping[str, str]) -> OtelSettings | None:
    """None where no traces are to be sent. Raises UsageError for what cannot be understood."""
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return None
    service = environ.get("HARN_OTEL_SERVICE_NAME", "") or environ.get("OTEL_SERVICE_NAME", "")
    ours = environ.get("HARN_OTEL_ENDPOINT", "").strip()
    if not ours:
        if environ.get("OTEL_TRACES_EXPORTER", "otlp").strip() not in ("", "otlp"):
            return None
        if not any(environ.get(name, "").strip() for name in _ENDPOINTS):
            return None
        _check_protocol(environ)
    return OtelSettings(
        service=service or DEFAULT_SERVICE,
        endpoint=_traces_url(ours) if ours else None,
        headers=_headers(environ.get("HARN_OTEL_HEADERS", "")),
        sample_ratio=_ratio(environ.get("HARN_OTEL_SAMPLE_RATIO", "")),
    )


def _check_protocol(environ: Mapping[str, str]) -> None:
    for name in _PROTOCOLS:
        said = environ.get(name, "").strip()
        if said and said != _PROTOCOL:
            raise UsageError(f"{name} is {said!r}; traces are sent as {_PROTOCOL} only")


def _traces_url(endpoint: str) -> str:
    parts = urlsplit(endpoint)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise UsageError(
            "HARN_OTEL_ENDPOINT is no http:// or https:// address, as in http://collector:4318"
        )
    plain = endpoint.rstrip("/")
    return plain if plain.endswith(TRACES_PATH) else plain + TRACES_PATH


def _headers(written: str) -> dict[str, str] | None:
    """`name=value`, several of them separated by commas, semicolons or newlines."""
    found = {}
    for part in filter(None, (each.strip() for each in re.split(r"[,;\n]", written))):
        name, equals, value = part.partition("=")
        if not equals or not name.strip():
            raise UsageError("HARN_OTEL_HEADERS has a part that is not name=value")
        found[name.strip().lower()] = value.strip()
    return found or None


def _ratio(written: str) -> float | None:
    if not written.strip():
        return None
    try:
        found = float(written)
    except ValueError:
        found = -1.0
    if not 0.0 <= found <= 1.0:
        raise UsageError(f"HARN_OTEL_SAMPLE_RATIO is {written!r}; it is a number from 0.0 to 1.0")
    return found

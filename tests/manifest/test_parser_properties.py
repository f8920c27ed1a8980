from __future__ import annotations

from contextlib import suppress
from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harn_temporal.errors import ExpressionError, ManifestError
from harn_temporal.expressions import compile_cel, compile_jmespath
from harn_temporal.manifest import Manifest, parse_manifest
from harn_temporal.manifest.keys import UNUSED_TRIGGER_KEYS

TEXT = st.text(st.characters(codec="utf-8"), max_size=12)
VALUE = st.recursive(
    st.one_of(
        TEXT,
        st.integers(),
        st.floats(),
        st.booleans(),
        st.just(datetime(2026, 1, 1, tzinfo=UTC)),
        st.just(date(2026, 1, 1)),
        st.sampled_from(["10m", "run", "m::run", "a2a://h:1/p", "worker://q", "event.headers.key"]),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXT, inner, max_size=3)),
    max_leaves=8,
)


def tables(**keys: st.SearchStrategy) -> st.SearchStrategy:
    """Tables in which each key may be missing, may be what is wanted, or may be anything."""
    wanted = {key: st.one_of(value, VALUE) for key, value in keys.items()}
    return st.fixed_dictionaries({}, optional={**wanted, "else": VALUE})


COUNT = st.integers(-1, 120)
DURATION = st.sampled_from(["1s", "5m", "0s", "1 h", "x"])
CEL = st.sampled_from(["event.kind", "event.", "event.headers.token", "run"])
GATES = {
    "concurrency": tables(key=CEL, max=COUNT),
    "throttle": tables(key=CEL, period=DURATION, max=COUNT),
    "rate_limit": tables(key=CEL, period=DURATION, max=COUNT),
    "debounce": tables(key=CEL, period=DURATION, max_wait=DURATION),
    "singleton": tables(key=CEL),
    "batch": tables(key=CEL, size=COUNT, timeout=DURATION),
    "budget": tables(max_concurrent=COUNT),
}
RETRY = tables(
    max=COUNT,
    backoff=st.sampled_from(["immediate", "svix", "linear", "exponential"]),
    retention_days=COUNT,
    delay_ms=COUNT,
    base_ms=COUNT,
    cap_ms=COUNT,
)
KEYS = {
    "id": st.sampled_from(["a", "b", "a.b"]),
    "kind": st.sampled_from(["webhook", "cron"]),
    "provider": st.just("github"),
    "match": tables(events=st.lists(TEXT, max_size=2)),
    "handler": st.sampled_from(["run", "m::run", "a2a://h", "worker://q"]),
    "when": CEL,
    "filter": CEL,
    "dedupe_key": CEL,
    "retry": RETRY,
    "priority": st.one_of(st.sampled_from(["high", "low"]), tables(key=CEL, order=st.lists(TEXT))),
    "timeout": DURATION,
    "allow_cleartext": st.booleans(),
    **GATES,
    **dict.fromkeys(sorted(UNUSED_TRIGGER_KEYS - {"budget"}), VALUE),
}
DOCUMENTS = tables(
    package=tables(name=st.just("demo")),
    exports=st.dictionaries(st.sampled_from(["m", "n"]), TEXT),
    orchestrator=tables(pumps=tables(max_outstanding=COUNT)),
    triggers=st.lists(tables(**KEYS, sources=st.lists(tables(**KEYS), max_size=2)), max_size=3),
)


def parsed(document: dict) -> tuple[Manifest | None, tuple[str, ...]]:
    try:
        return parse_manifest(document, Path("harn.toml"), load_handlers=False), ()
    except ManifestError as error:
        return None, error.problems


@given(DOCUMENTS)
@settings(max_examples=60, deadline=None)
def test_any_document_is_a_manifest_or_a_manifest_error(document):
    manifest, problems = parsed(document)
    if manifest is None:
        assert problems
        assert len(set(problems)) == len(problems)
        assert all(each.startswith("harn.toml") for each in problems)
        assert not any("\n" in each or "\x1b" in each for each in problems)
    else:
        ids = [each.trigger_id for each in manifest.bindings]
        assert len(set(ids)) == len(ids)


TOKENS = [*".[]()\"'=!?1,|&*@`{}:\\ ", "event", "a", "headers", "x", "==", "&&", "||", "map", "r'"]
SOURCE = st.one_of(
    st.text(max_size=40),
    st.lists(st.sampled_from(TOKENS), max_size=14).map("".join),
)
EVENT = {"a": {"a": [1, None, "x"]}, "headers": {"a": "x"}, "x": None}


@pytest.mark.filterwarnings("ignore:deprecated string literal:PendingDeprecationWarning")
@given(SOURCE)
@settings(max_examples=150, deadline=None)
def test_any_text_is_an_expression_or_an_expression_error(source):
    for compiled, scope in ((compile_cel, EVENT), (compile_jmespath, {"event": EVENT})):
        with suppress(ExpressionError):
            compiled(source).evaluate(scope)

from __future__ import annotations

from pathlib import Path

import pytest

from harn_temporal.bindings import HandlerTarget, When
from harn_temporal.manifest import load_manifest
from harn_temporal.retry import Exponential, Immediate, Linear, RetryPolicy, Svix


def test_a_trigger_with_its_defaults(one):
    (binding,) = one("").bindings
    expected = {
        "package": "demo",
        "trigger_id": "a",
        "version": 0,
        "kind": "webhook",
        "provider": "github",
        "events": ("issues.opened",),
        "handler": {"kind": "local", "uri": "run"},
        "when": None,
        "filter": None,
        "dedupe_key": None,
        "retry": {"schedule": {"backoff": "svix"}, "max_attempts": 7, "retention_days": 7},
        "priority": "normal",
        "timeout_ms": 600_000,
        "allow_cleartext": False,
    }
    found = binding.model_dump()
    assert {key: found[key] for key in expected} == expected


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ('{ backoff = "svix" }', RetryPolicy()),
        ('{ max = 0, backoff = "svix" }', RetryPolicy(max_attempts=7)),
        ('{ max = 1, backoff = "svix" }', RetryPolicy(schedule=Svix(), max_attempts=1)),
        ("{ max = 3 }", RetryPolicy(schedule=Immediate(), max_attempts=3)),
        (
            '{ max = 100, backoff = "immediate", retention_days = 1 }',
            RetryPolicy(schedule=Immediate(), max_attempts=100, retention_days=1),
        ),
        (
            '{ backoff = "linear", delay_ms = 250 }',
            RetryPolicy(schedule=Linear(interval_ms=250)),
        ),
        (
            '{ backoff = "exponential", base_ms = 10, cap_ms = 10 }',
            RetryPolicy(schedule=Exponential(base_ms=10, cap_ms=10)),
        ),
    ],
)
def test_retry(one, table, expected):
    (binding,) = one(f"retry = {table}").bindings
    assert binding.retry == expected


@pytest.mark.parametrize(
    ("lines", "field", "expected"),
    [
        ('timeout = "500ms"', "timeout_ms", 500),
        ('timeout = "2w"', "timeout_ms", 1_209_600_000),
        ('priority = "high"', "priority", "high"),
        ('when = "decide"', "when", When(kind="function", source="decide")),
        ('when = " decide "', "when", When(kind="function", source="decide")),
        ('when = "true"', "when", When(kind="cel", source="true")),
        ("when = 'event.kind == \"x\"'", "when", When(kind="cel", source='event.kind == "x"')),
        (
            "when = \"event.headers['idempotency-key'] != null\"",
            "when",
            When(kind="cel", source="event.headers['idempotency-key'] != null"),
        ),
        ('filter = "event.kind"', "filter", "event.kind"),
        ('dedupe_key = "event.dedupe_key"', "dedupe_key", "event.dedupe_key"),
        ("allow_cleartext = false", "allow_cleartext", False),
    ],
)
def test_a_key_becomes_a_field(one, lines, field, expected):
    (binding,) = one(lines).bindings
    assert getattr(binding, field) == expected


@pytest.mark.parametrize("kind", ["webhook", "cron", "poll", "stream", "predicate", "a2a-push"])
def test_kinds(load, kind):
    manifest = load(
        f'[[triggers]]\nid="a"\nkind="{kind}"\nprovider="p"\nmatch={{}}\nhandler="run"\n'
    )
    assert manifest.bindings[0].kind == kind
    assert manifest.bindings[0].matches("p", "anything")
    if kind in {"cron", "poll", "stream"}:
        assert manifest.tick_warning == (
            f"harn.toml: nothing ticks a ({kind}) yet; "
            "they run when an event is fired or ingested for them"
        )
    else:
        assert manifest.tick_warning is None


@pytest.mark.parametrize("target", ["lib.py", "lib.harn", "lib"])
def test_a_module_goes_through_exports(load, target):
    manifest = load(
        f'[exports]\nm = "{target}"\n'
        '[[triggers]]\nid="a"\nkind="webhook"\nprovider="p"\nmatch={}\n'
        'handler="m::run"\nwhen="m::decide"\n'
    )
    assert manifest.bindings[0].handler == HandlerTarget(kind="local", uri="m::run")
    assert manifest.handlers.load("m::run").name == "m::run"
    assert manifest.exports == {"m": "lib" if target == "lib" else "lib.py"}


def test_a_source_inherits_what_it_does_not_override(load):
    manifest = load(
        """
        [[triggers]]
        id = "t"
        handler = "run"
        when = "decide"
        filter = "event.kind"
        timeout = "1m"
        retry = { max = 3, backoff = "svix" }
        secrets = { a = "trigger", b = "trigger" }

        [[triggers.sources]]
        id = "hooks"
        kind = "webhook"
        provider = "github"
        match = { events = ["push"] }

        [[triggers.sources]]
        kind = "stream"
        provider = "kafka"
        match = {}
        filter = "event.id"
        timeout = "2m"
        retry = { max = 5, backoff = "immediate" }
        priority = "low"
        secrets = { b = "source" }
        """
    )
    hooks, second = manifest.bindings
    assert (hooks.trigger_id, hooks.kind, hooks.provider) == ("t.hooks", "webhook", "github")
    assert (hooks.events, hooks.filter, hooks.timeout_ms) == (("push",), "event.kind", 60_000)
    assert hooks.retry == RetryPolicy(max_attempts=3)
    assert (second.trigger_id, second.kind, second.events) == ("t.source-2", "stream", ())
    assert (second.filter, second.timeout_ms, second.priority) == ("event.id", 120_000, "low")
    assert second.retry == RetryPolicy(schedule=Immediate(), max_attempts=5)
    assert hooks.when == second.when == When(kind="function", source="decide")
    assert hooks.handler == second.handler == HandlerTarget(kind="local", uri="run")
    assert manifest.kept == {
        "t.hooks": {"secrets": {"a": "trigger", "b": "trigger"}},
        "t.source-2": {"secrets": {"a": "trigger", "b": "source"}},
    }


def test_a_handler_of_each_source_stands_for_that_of_the_trigger(load):
    source = 'kind = "webhook"\nprovider = "p"\nmatch = {}\n'
    manifest = load(
        f'[[triggers]]\nid = "t"\n[[triggers.sources]]\n{source}handler = "run"\n'
        f'[[triggers.sources]]\n{source}handler = "decide"\n'
    )
    assert [each.handler.uri for each in manifest.bindings] == ["run", "decide"]


def test_unused_keys_are_kept_with_one_warning(load):
    manifest = load(
        """
        [llm]
        default = "x"
        [orchestrator]
        allowed_origins = ["*"]
        pumps.max_outstanding = 5
        [[triggers]]
        id = "a"
        kind = "cron"
        provider = "cron"
        match = {}
        handler = "run"
        schedule = "* * * * *"
        timezone = "UTC"
        [[triggers]]
        id = "b"
        kind = "cron"
        provider = "cron"
        match = {}
        handler = "run"
        schedule = "1 * * * *"
        budget = { daily_cost_usd = 1.5 }
        """
    )
    assert manifest.warnings == (
        (
            "harn.toml: kept, but not used by this version: [llm]; budget (b); "
            "orchestrator.allowed_origins; schedule (a, b); timezone (a)"
        ),
    )
    assert manifest.max_outstanding == 5
    assert manifest.kept == {
        "a": {"schedule": "* * * * *", "timezone": "UTC"},
        "b": {"budget": {"daily_cost_usd": 1.5}, "schedule": "1 * * * *"},
    }


def test_max_outstanding_has_a_default_and_an_alias(load):
    assert load("").max_outstanding == 64
    assert load("[orchestrator]\npumps.max-outstanding = 7").max_outstanding == 7


def test_without_a_package_the_folder_s_name_stands_for_its_name(tmp_path):
    path = tmp_path / "consumer" / "harn.toml"
    path.parent.mkdir()
    path.write_text("")
    assert load_manifest(path).package == "consumer"
    path.write_text('[package]\nname = "other"')
    assert load_manifest(path).package == "other"


def test_a_manifest_without_triggers_says_so(load):
    assert load("").warnings == ("harn.toml: there are no [[triggers]], so nothing is dispatched",)


def test_a_byte_order_mark_is_no_mistake(folder):
    path = folder / "harn.toml"
    path.write_bytes('\ufeff[package]\nname = "demo"\n'.encode())
    assert load_manifest(path).package == "demo"


def test_handlers_are_left_alone_when_not_wanted(tmp_path):
    path = tmp_path / "harn.toml"
    path.write_text(
        '[package]\nname="p"\n[[triggers]]\nid="a"\nkind="webhook"\nprovider="p"\nmatch={}\n'
        'handler="absent"\n'
    )
    manifest = load_manifest(path, load_handlers=False)
    assert [each.trigger_id for each in manifest.bindings] == ["a"]
    assert manifest.binding("a") is manifest.bindings[0]
    assert manifest.binding("b") is None


def test_a_path_relative_to_the_working_folder(folder, monkeypatch):
    (folder / "harn.toml").write_text(
        '[package]\nname="p"\n[[triggers]]\nid="a"\nkind="webhook"\nprovider="p"\nmatch={}\n'
        'handler="run"\n'
    )
    monkeypatch.chdir(folder)
    assert load_manifest(Path("harn.toml")).handlers.load("run").name == "run"

from __future__ import annotations

import pytest

BASE = """
[[triggers]]
id = "a"
kind = "webhook"
provider = "github"
match = { events = ["issues.opened", "issues.closed"] }
handler = "run"
"""


def fingerprint(load, text):
    (binding,) = load(text).bindings
    return binding.fingerprint


def test_a_fingerprint_never_changes_by_itself(load):
    assert fingerprint(load, BASE) == (
        "c45bea4c6888f4e000ac11aa2f9b0dfaa2019c17dccb58e3d39a6b70f1fe0388"
    )


@pytest.mark.parametrize(
    "same",
    [
        BASE + "# a comment\n",
        """
        [[triggers]]
        handler   = 'run'
        match     = { events = ["issues.closed", "issues.opened", "issues.closed"] }
        provider  = "github"
        kind      = "webhook"
        id        = "a"
        """,
        """
        [[triggers]]
        id = "a"
        kind = "webhook"
        provider = "github"
        handler = "run"
        [triggers.match]
        events = ["issues.opened", "issues.closed"]
        """,
        BASE
        + 'retry = { max = 7, backoff = "svix", retention_days = 7 }\npriority = "normal"\n'
        + 'timeout = "600s"\nallow_cleartext = false\n',
        BASE + 'retry = { max = 0, backoff = "svix" }\n',
        BASE + 'secrets = { a = "b" }\n',
        BASE + '[exports]\nm = "lib.py"\n[orchestrator]\npumps.max_outstanding = 3\n',
    ],
)
def test_what_means_the_same_has_the_same_fingerprint(load, same):
    assert fingerprint(load, same) == fingerprint(load, BASE)


def test_the_package_is_no_part_of_it(load, folder):
    from harn_temporal.manifest import load_manifest

    here = fingerprint(load, BASE)
    (folder / "harn.toml").write_text('[package]\nname = "other"\n' + BASE)
    (binding,) = load_manifest(folder / "harn.toml").bindings
    assert (binding.package, binding.fingerprint) == ("other", here)


@pytest.mark.parametrize(
    "other",
    [
        BASE.replace('"a"', '"b"'),
        BASE.replace("webhook", "poll"),
        BASE.replace("github", "gitlab"),
        BASE.replace(', "issues.closed"', ""),
        BASE.replace("run", "decide"),
        *(
            BASE + line
            for line in (
                'when = "decide"',
                'when = "event.kind != null"',
                'filter = "event.kind"',
                'dedupe_key = "event.id"',
                'priority = "low"',
                'timeout = "1m"',
                'retry = { max = 6, backoff = "svix" }',
                'retry = { backoff = "svix", retention_days = 8 }',
                'retry = { backoff = "immediate" }',
                'retry = { backoff = "linear", delay_ms = 0 }',
                'retry = { backoff = "linear", delay_ms = 1 }',
                'retry = { backoff = "exponential", base_ms = 1, cap_ms = 1 }',
            )
        ),
    ],
)
def test_what_means_something_else_has_another(load, other):
    assert fingerprint(load, other) != fingerprint(load, BASE)


def test_all_those_differ_among_themselves(load):
    mark = test_what_means_something_else_has_another.pytestmark[0]
    found = [fingerprint(load, text) for text in mark.args[1]]
    assert len(set(found)) == len(found)


def test_a_source_has_the_fingerprint_of_the_same_trigger_written_out(load):
    source = """
    [[triggers]]
    id = "a"
    handler = "run"
    timeout = "1m"
    sources = [{ id = "b", kind = "webhook", provider = "github", match = {} }]
    """
    written = """
    [[triggers]]
    id = "a.b"
    handler = "run"
    timeout = "1m"
    kind = "webhook"
    provider = "github"
    match = {}
    """
    assert fingerprint(load, source) == fingerprint(load, written)

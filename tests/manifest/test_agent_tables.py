"""Handlers that are A2A agents, and the tables that go with them."""

from __future__ import annotations

import pytest

from harn_temporal.bindings import FollowTask

TRIGGER = """
[[triggers]]
id = "a"
kind = "webhook"
provider = "github"
match = {}
handler = "a2a://reviewer.prod:8080/triage"
"""


@pytest.fixture
def agent(load):
    return lambda lines="": load(TRIGGER + lines).bindings[0]


@pytest.fixture
def agent_problems(problems):
    return lambda lines: [text.rpartition('"a", ')[2] for text in problems(TRIGGER + lines)]


def test_an_agent_with_its_defaults(agent):
    binding = agent()
    assert binding.handler.model_dump() == {"kind": "a2a", "uri": "a2a://reviewer.prod:8080/triage"}
    assert (binding.follow, binding.bearer_env, binding.allow_cleartext) == (None, None, False)


@pytest.mark.parametrize(
    ("table", "follow"),
    [
        ('{ follow = true, timeout = "2h", poll = "5s" }', FollowTask(timeout_ms=7_200_000)),
        ("{ follow = true }", FollowTask(timeout_ms=3_600_000, poll_ms=5_000)),
        ('{ follow = true, timeout = "1s" }', FollowTask(timeout_ms=1_000, poll_ms=1_000)),
        ('{ follow = true, timeout = "7d" }', FollowTask(timeout_ms=7 * 86_400_000)),
        ("{ follow = false }", None),
        ("{}", None),
    ],
)
def test_following(agent, table, follow):
    assert agent(f"a2a = {table}").follow == follow


def test_a_token_is_named_by_its_variable(agent):
    assert agent('auth = { bearer_env = "REVIEWER_TOKEN" }').bearer_env == "REVIEWER_TOKEN"


def test_what_goes_with_an_agent_is_part_of_the_definition(agent):
    lines = ("", "a2a = { follow = true }", 'auth = { bearer_env = "T" }', "allow_cleartext = true")
    assert len({agent(line).fingerprint for line in lines}) == 4
    assert agent("a2a = { follow = false }").fingerprint == agent().fingerprint


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("a2a = true", ["a2a: found true; allowed: a table"]),
        ("a2a = { folow = true }", ["a2a.folow: unknown key; the nearest known one is `follow`"]),
        (
            'a2a = { timeout = "1h" }',
            ["a2a.timeout: is for tasks that are followed; it needs follow = true"],
        ),
        (
            'a2a = { follow = true, timeout = "8d" }',
            ['a2a.timeout: found "8d"; allowed: a duration of at most "7d"'],
        ),
        (
            'a2a = { follow = true, timeout = "1s", poll = "2s" }',
            ['a2a.poll: found "2s"; allowed: a duration of at most the timeout'],
        ),
        (
            "auth = {}",
            [
                (
                    "auth.bearer_env: missing; allowed: the name of an environment variable, "
                    'such as "REVIEWER_TOKEN"'
                )
            ],
        ),
    ],
)
def test_what_is_wrong(agent_problems, lines, expected):
    assert agent_problems(lines) == expected


def test_a_token_in_place_of_its_variable_is_not_repeated(agent_problems):
    (problem,) = agent_problems('auth = { bearer_env = "sk-12345" }')
    assert "sk-12345" not in problem
    assert "may be a secret" in problem


@pytest.mark.parametrize(
    ("line", "key"),
    [("a2a = { follow = true }", "a2a"), ('auth = { bearer_env = "T" }', "auth")],
)
def test_functions_are_no_agents(problems, line, key):
    found = problems(TRIGGER.replace("a2a://reviewer.prod:8080/triage", "run") + line)
    assert [text.rpartition('"a", ')[2] for text in found] == [
        f"{key}: is for a2a:// handlers; this one is run"
    ]


def test_a_source_inherits_and_overrides(load):
    manifest = load(
        """
        [[triggers]]
        id = "a"
        handler = "a2a://one"
        a2a = { follow = true }
        auth = { bearer_env = "ONE" }
        sources = [
          { kind = "webhook", provider = "p", match = {} },
          { kind = "webhook", provider = "q", match = {}, a2a = {}, auth = { bearer_env = "TWO" } },
        ]
        """
    )
    first, second = manifest.bindings
    assert (first.follow, first.bearer_env) == (FollowTask(), "ONE")
    assert (second.follow, second.bearer_env) == (None, "TWO")

from __future__ import annotations

import pytest

from harn_temporal.errors import ManifestError
from harn_temporal.manifest import load_manifest

TARGETS = '"function", "module::function", "a2a://host[:port]/path" or "worker://queue"'
DURATION = 'a positive duration such as "10m", the units being s, m, h, d, w'
COUNT = "an integer from 1 to 4294967295"
ID = "a text of 1 to 200 characters, without blanks and control characters"


def redacted(source: str, header: str) -> str:
    return (
        f'`{source}` reads the header "{header}", whose value is redacted in every event, so all '
        "events would look alike; use another header or a field of the payload"
    )


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("retri = {}", ["retri: unknown key; the nearest known one is `retry`"]),
        ("throtle = {}", ["throtle: unknown key; the nearest known one is `throttle`"]),
        ('"retry\\n" = 1', ['"retry\\n": unknown key; the nearest known one is `retry`']),
        ("retry = 3", ["retry: found 3; allowed: a table"]),
        (
            "retry = { max = 101 }",
            ["retry.max: found 101; allowed: an integer from 0 to 100 (0 means 7)"],
        ),
        (
            "retry = { max = true }",
            ["retry.max: found true; allowed: an integer from 0 to 100 (0 means 7)"],
        ),
        (
            "retry = { max = 3.0 }",
            ["retry.max: found 3.0; allowed: an integer from 0 to 100 (0 means 7)"],
        ),
        (
            "retry = { retention_days = 0 }",
            ["retry.retention_days: found 0; allowed: an integer from 1 to 36500 (days)"],
        ),
        (
            'retry = { backoff = "expo" }',
            [
                (
                    'retry.backoff: found "expo"; allowed: "immediate", "svix", "linear" '
                    'or "exponential"'
                )
            ],
        ),
        (
            'retry = { backoff = "svix", delay_ms = 5 }',
            ['retry.delay_ms: belongs to backoff = "linear"; this backoff is "svix"'],
        ),
        (
            'retry = { backoff = "linear" }',
            [
                (
                    "retry.delay_ms: missing; allowed: an integer of milliseconds, at least 0; "
                    'backoff = "linear" needs it'
                )
            ],
        ),
        (
            'retry = { backoff = "exponential", base_ms = 10, cap_ms = 5 }',
            ["retry.cap_ms: found 5; allowed: at least base_ms, which is 10"],
        ),
        (
            "retry = { max_attempts = 3 }",
            ["retry.max_attempts: unknown key; the nearest known one is `max`"],
        ),
        (
            'priority = "urgent"',
            [
                (
                    'priority: found "urgent"; allowed: "high", "normal", "low", '
                    "or a table { key, order }"
                )
            ],
        ),
        (
            'timeout = "0s"',
            [
                (
                    'timeout: found "0s"; allowed: a positive duration such as "10m", '
                    "the units being ms, s, m, h, d, w"
                )
            ],
        ),
        ("allow_cleartext = true", ["allow_cleartext: is for a2a:// handlers; this one is run"]),
        ('allow_cleartext = "yes"', ['allow_cleartext: found "yes"; allowed: true or false']),
        (
            'when = ""',
            ['when: found ""; allowed: a CEL expression, "function" or "module::function"'],
        ),
        (
            'when = "handlers.ok"',
            [
                (
                    "when: `handlers.ok` reads `handlers`, which does not exist: a CEL expression "
                    "sees `event` only, as in `event.headers.tenant`"
                )
            ],
        ),
        (
            'when = "m::ok"',
            ['when: found "m::ok", but [exports] has no module "m"'],
        ),
        (
            'filter = "true"',
            [
                (
                    "filter: `true` reads `true`, which does not exist: a JMESPath expression sees "
                    "`event` only, as in `event.headers.tenant`"
                )
            ],
        ),
        (
            'when = \'event.headers["X-Api-Key"] == "a"\'',
            ["when: " + redacted('event.headers["X-Api-Key"] == "a"', "X-Api-Key")],
        ),
        (
            'when = "has(event.headers.authorization)"',
            ["when: " + redacted("has(event.headers.authorization)", "authorization")],
        ),
        (
            "dedupe_key = 'event.headers.\"x-api-key\"'",
            ["dedupe_key: " + redacted('event.headers."x-api-key"', "x-api-key")],
        ),
        (
            "filter = 'event | headers.cookie'",
            ["filter: " + redacted("event | headers.cookie", "cookie")],
        ),
        (
            'singleton = { key = "event.headers.token" }',
            [
                "singleton.key: " + redacted("event.headers.token", "token"),
            ],
        ),
        (
            "concurrency = {}",
            [
                f"concurrency.max: missing; allowed: {COUNT}",
            ],
        ),
        (
            'throttle = { max = 0, period = "1ms" }',
            [
                f'throttle.period: found "1ms"; allowed: {DURATION}',
                f"throttle.max: found 0; allowed: {COUNT}",
            ],
        ),
        (
            'rate_limit = { max = 1, period = "1 h" }',
            [f'rate_limit.period: found "1 h"; allowed: {DURATION}'],
        ),
        (
            'debounce = { key = "event.id", period = "1m", max_wait = "30s" }',
            [
                'debounce.max_wait: found "30s"; allowed: at least the period, which is "1m"',
            ],
        ),
        (
            'debounce = { period = "1m" }',
            ["debounce.key: missing; allowed: a CEL expression"],
        ),
        (
            'batch = { size = 2, timeout = "1m" }\nsingleton = {}',
            [
                "batch: goes with no other gate; remove it or `singleton`",
            ],
        ),
        (
            'batch = { size = 2, timeout = "1m" }\nbudget = { max_concurrent = 3 }',
            [
                "batch: goes with no other gate; remove it or `concurrency`",
            ],
        ),
        (
            "concurrency = { max = 1 }\nbudget = { max_concurrent = 3 }",
            [
                "budget.max_concurrent: says what `concurrency.max` says; remove one of them",
            ],
        ),
        (
            'priority = { key = "event.id", order = ["a"] }',
            [
                "priority: orders who waits for `concurrency`, which is missing here",
            ],
        ),
        (
            'concurrency = { max = 1 }\npriority = { key = "event.id", order = [] }',
            [
                (
                    "priority.order: found an empty array; allowed: an array of one text or more, "
                    "the first being the most urgent"
                ),
            ],
        ),
        (
            'concurrency = { max = 1 }\npriority = { key = "event.id", order = ["a", "b", "a"] }',
            [
                "priority.order: holds a text twice; each stands at one place",
            ],
        ),
        (
            "sources = []",
            [
                "sources: found an empty array; allowed: an array of one table or more",
                *(
                    f"{key}: each source has its own; move it into the sources"
                    for key in ("kind", "provider", "match")
                ),
            ],
        ),
        ('secrets = "x"', ['secrets: found "x"; allowed: a table']),
    ],
)
def test_a_mistake_is_named_with_what_is_allowed(of_trigger, lines, expected):
    assert list(of_trigger(lines)) == expected


@pytest.mark.parametrize(
    ("handler", "expected"),
    [
        ("http://x", f'"http://x" has the unknown scheme http://; allowed: {TARGETS}'),
        ("A2A://x", f'"A2A://x" has the unknown scheme A2A://; allowed: {TARGETS}'),
        ("a2a://", f'"a2a://" names no target; allowed: {TARGETS}'),
        ("worker://", f'"worker://" names no target; allowed: {TARGETS}'),
        ("worker:// ", f'"worker://" names no target; allowed: {TARGETS}'),
        ("", f'found ""; allowed: {TARGETS}'),
        ("not a name", f'found "not a name"; allowed: {TARGETS}'),
        ("class", f'found "class"; allowed: {TARGETS}'),
        (
            "a2a://host:99999/x",
            (
                'found "a2a://host:99999/x"; allowed: a2a://host[:port]/path, without user, '
                "query or fragment, the port being from 1 to 65535"
            ),
        ),
        (
            "a2a:///path",
            'found "a2a:///path"; allowed: a2a://host[:port]/path, without user, query or fragment',
        ),
        (
            "a2a://user@host/",
            (
                'found "a2a://user@host/"; allowed: a2a://host[:port]/path, without user, query or '
                "fragment"
            ),
        ),
        (
            "worker://x.claims",
            (
                "the queue name 'x.claims' is taken by the log's own topics; use any but "
                "`queues` and those that end in .claims or .responses"
            ),
        ),
    ],
)
def test_a_handler_that_cannot_be(of_trigger, handler, expected):
    assert of_trigger(f"handler = '{handler}'", handler=False) == (f"handler: {expected}",)


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("id", f"id: missing; allowed: {ID}"),
        (
            "kind",
            'kind: missing; allowed: "webhook", "cron", "poll", "stream", "predicate", "a2a-push"',
        ),
        ("provider", 'provider: missing; allowed: the name of a provider, such as "github"'),
        (
            "match",
            (
                'match: missing; allowed: a table such as { events = ["issues.opened"] }; '
                "{} matches all"
            ),
        ),
        ("handler", "handler: missing; allowed: a function, an a2a:// agent or a worker:// queue"),
    ],
)
def test_a_required_key_that_is_missing(of_trigger, key, expected):
    (found,) = of_trigger("", **{key: False})
    assert found.removeprefix("harn.toml, [[triggers]] #1 without an id, ") == expected


@pytest.mark.parametrize(
    ("function", "expected"),
    [("nope", "has no function nope"), ("three", "takes (a, b, c)")],
)
@pytest.mark.parametrize("key", ["handler", "when"])
def test_a_function_that_is_no_handler(of_trigger, key, function, expected):
    (found,) = of_trigger(f'{key} = "{function}"', **{key: False})
    assert found.startswith(f"{key}: ")
    assert "lib.py" in found
    assert expected in found


def test_a_function_of_an_entry_with_another_mistake_is_looked_at_too(of_trigger):
    found = of_trigger('handler = "nope"', handler=False, match=False)
    assert [problem.partition(":")[0] for problem in found] == ["match", "handler"]


def test_a_source_is_checked_together_with_what_it_inherits(problems):
    found = problems(
        """
        [[triggers]]
        id = "t"
        handler = "run"
        singleton = {}

        [[triggers.sources]]
        kind = "webhook"
        provider = "p"
        match = {}
        batch = { size = 2, timeout = "1m" }
        handler = "decide"
        allow_cleartext = true

        [[triggers.sources]]
        kind = "webhook"
        provider = "p"
        match = {}
        """
    )
    source = 'harn.toml, [[triggers]] #1 "t", sources #1'
    assert found == (
        f"{source}, batch: goes with no other gate; remove it or `singleton`",
        f"{source}, allow_cleartext: is for a2a:// handlers; this one is decide",
    )


def test_a_source_with_a_handler_that_has_no_use_for_cleartext(problems):
    found = problems(
        """
        [[triggers]]
        id = "t"
        handler = "a2a://host/"
        allow_cleartext = true
        sources = [{ kind = "webhook", provider = "p", match = {}, handler = "run" }]
        """
    )
    assert found == (
        (
            'harn.toml, [[triggers]] #1 "t", sources #1, allow_cleartext: is for a2a:// handlers; '
            "this one is run"
        ),
    )


def test_a_module_that_fails_is_imported_once_and_reported_everywhere(of_trigger, folder):
    (folder / "lib.py").write_text(
        "import pathlib\n"
        "with (pathlib.Path(__file__).parent / 'imports').open('a') as file:\n"
        "    file.write('x')\n"
        "raise RuntimeError('out of order')\n"
    )
    found = of_trigger('when = "run"')
    assert [problem.partition(": ")[0] for problem in found] == ["handler", "when"]
    assert all("out of order" in problem for problem in found)
    assert (folder / "imports").read_text() == "x"


def test_five_mistakes_are_all_reported(problems, folder):
    found = problems(
        """
        [[triggers]]
        id = "first"
        kind = "webhok"
        provider = "github"
        match = {}
        handler = "nope"
        retry = { max = 1000 }

        [[triggers]]
        id = "second"
        kind = "cron"
        provider = "cron"
        handler = "run"
        when = "event."
        """
    )
    assert [problem.partition(": ")[0] for problem in found] == [
        'harn.toml, [[triggers]] #1 "first", retry.max',
        'harn.toml, [[triggers]] #1 "first", kind',
        'harn.toml, [[triggers]] #2 "second", when',
        'harn.toml, [[triggers]] #2 "second", match',
        'harn.toml, [[triggers]] #1 "first", handler',
    ]
    with pytest.raises(ManifestError, match=r"harn\.toml: 5 problems\n  - harn"):
        load_manifest(folder / "harn.toml")


def test_an_id_is_unique_whichever_way_it_comes_about(problems):
    trigger = '[[triggers]]\nid = "{}"\nhandler = "run"\n'
    identity = 'kind = "webhook"\nprovider = "github"\nmatch = {}\n'
    source = "[[triggers.sources]]\n" + identity
    found = problems(
        trigger.format("a.b")
        + identity
        + trigger.format("a")
        + source
        + 'id = "b"\n'
        + source
        + 'id = "source-3"\n'
        + source
        + trigger.format("a.b")
        + identity
    )
    assert found == (
        (
            'harn.toml, [[triggers]] #2 "a", sources #1 "b", id: the id "a.b" is taken by '
            '[[triggers]] #1 "a.b"; ids are unique'
        ),
        (
            'harn.toml, [[triggers]] #2 "a", sources #3, id: the id "a.source-3" is taken by '
            '[[triggers]] #2 "a", sources #2 "source-3"; ids are unique'
        ),
        (
            'harn.toml, [[triggers]] #3 "a.b", id: the id "a.b" is taken by '
            '[[triggers]] #1 "a.b"; ids are unique'
        ),
    )


@pytest.mark.parametrize("given", ['""', '"a b"', '"a\\tb"', "3", f'"{"x" * 201}"'])
def test_an_id_that_cannot_be(of_trigger, given):
    (found,) = of_trigger(f"id = {given}", id=False)
    assert found.endswith(f"; allowed: {ID}")


@pytest.mark.parametrize("name", ['""', '"a b"', '"a/b"', '"ü"', "7", f'"{"x" * 101}"'])
def test_a_package_name_that_cannot_be(folder, name):
    path = folder / "harn.toml"
    path.write_text(f"[package]\nname = {name}\n")
    with pytest.raises(ManifestError) as caught:
        load_manifest(path)
    (found,) = caught.value.problems
    assert found.startswith("harn.toml, package.name: found ")
    assert found.endswith(
        "allowed: 1 to 100 characters of A-Z a-z 0-9 . _ -, since it names the Temporal task queue"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[package]", "package.name: missing; allowed: 1 to 100 characters"),
        ("package = 3", "package: found 3; allowed: a table"),
        ('[package]\nname="a"\n[trigger]', "trigger: unknown key; the nearest known one is `tri"),
        ('[package]\nname="a"\n[triggers]', "triggers: found a table; write each trigger as [[tr"),
        ('[package]\nname="a"\n[exports]\nm = 3', "exports.m: found 3; allowed: a file or a"),
        (
            '[package]\nname="a"\n[orchestrator]\npumps.max_outstanding = 0',
            "orchestrator.pumps.max_outstanding: found 0; allowed: an integer from 1 to 100000",
        ),
        (
            '[package]\nname="a"\n[orchestrator]\npump = {}',
            "orchestrator.pump: unknown key; the nearest known one is `pumps`",
        ),
    ],
)
def test_the_tables_around_the_triggers(folder, text, expected):
    path = folder / "harn.toml"
    path.write_text(text)
    with pytest.raises(ManifestError) as caught:
        load_manifest(path)
    (found,) = caught.value.problems
    assert found.startswith(f"harn.toml, {expected}")


def test_a_folder_whose_name_cannot_stand_for_the_package_s(tmp_path):
    path = tmp_path / "a b" / "harn.toml"
    path.parent.mkdir()
    path.write_text("")
    with pytest.raises(ManifestError) as caught:
        load_manifest(path)
    (found,) = caught.value.problems
    assert found.startswith("harn.toml, package: missing, and the folder's name 'a b' cannot stand")


def test_a_file_that_is_not_there_is_named_with_the_option_for_another(tmp_path):
    path = tmp_path / "harn.toml"
    with pytest.raises(ManifestError) as caught:
        load_manifest(path)
    assert caught.value.problems == (
        f"there is no such file (looked at {path}); name another with --config",
    )


def test_a_folder_is_no_manifest(tmp_path):
    with pytest.raises(ManifestError, match="cannot be read: Is a directory; name another with"):
        load_manifest(tmp_path)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"a = 1\nb = \n", "not valid TOML: Invalid value (at line 2, column 5)"),
        (b"a = 1\na = 2\n", "not valid TOML: Cannot overwrite a value (at line 2, column 6)"),
        (b"a = 1\nb = '\xff'", "not UTF-8: byte 0xff at line 2, byte 6 of the line"),
        (b"a = " + b"[" * 5000, "not valid TOML: nested too deeply"),
        (b"a = " + b"9" * 5000, "not valid TOML: Exceeds the limit"),
    ],
)
def test_a_text_that_is_no_toml(tmp_path, raw, expected):
    path = tmp_path / "harn.toml"
    path.write_bytes(raw)
    with pytest.raises(ManifestError) as caught:
        load_manifest(path)
    (found,) = caught.value.problems
    assert found.startswith(expected)


def test_an_integer_beyond_all_bounds_is_shown_short(of_trigger):
    (found,) = of_trigger(f"retry = {{ max = 0x{'f' * 5000} }}")
    assert found.startswith("retry.max: found an integer of 20000 bits; allowed: ")

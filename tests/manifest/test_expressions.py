from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from harn_temporal.errors import ExpressionError
from harn_temporal.expression_paths import cel_paths
from harn_temporal.expressions import SOURCE_LIMIT, compile_cel, compile_jmespath

EVENT = {
    "provider": "github",
    "kind": "issues.opened",
    "tenant_id": None,
    "headers": {"tenant": "acme", "x-github-event": "issues", "a.b": "dotted"},
    "provider_payload": {
        "raw": {
            "action": "opened",
            "issue": {"number": 7, "labels": [{"name": "bug"}, None], "assignee": None},
            "big": 2**63 + 5,
            "ratio": 1.5,
        }
    },
}
ISSUE = "event.provider_payload.raw.issue"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("event.headers.tenant", "acme"),
        ('event["headers"]["a.b"]', "dotted"),
        ("event.headers['x-github-event']", "issues"),
        ('event.provider + ":" + event.kind', "github:issues.opened"),
        ("event.provider_payload.raw.big", 2**63 + 5),
        ("event.provider_payload.raw.ratio", 1.5),
        (f"{ISSUE}.number == 7 && event.kind.startsWith('issues.')", True),
        (f"{ISSUE}.labels[0].name", "bug"),
        (f"{ISSUE}.labels.exists(l, l != null && l.name == 'bug')", True),
        ("size(event.headers)", 3),
        ("event.headers", EVENT["headers"]),
        ("size(event) == 5 && event.kind != ''", True),
        ("'tenant' in event.headers", True),
        ("event.headers.exists(event, event == 'tenant')", True),
        ("has(event.headers.absent)", False),
        ("has(event.headers.tenant)", True),
        ("has(event.tenant_id)", True),
        ("event.tenant_id == null", True),
        ("type(event.kind) == string", True),
        ("event.headers // the whole of it", EVENT["headers"]),
        ("true", True),
        ("'constant'", "constant"),
        # A field that is missing
        ("event.headers.absent", None),
        ("event.absent.further", None),
        ("event.headers.absent == 'x'", None),
        ("event.headers.absent == null", None),
        ("event.headers.absent.startsWith('x')", None),
        ("!event.headers.absent", None),
        (f"{ISSUE}.labels[9].name", None),
        ("event.headers.absent == 'x' || event.kind == 'issues.opened'", True),
        ("event.headers.absent == 'x' && false", False),
        # A field that is null, read on from or computed with
        ("event.tenant_id", None),
        (f"{ISSUE}.assignee.login", None),
        ("event.tenant_id.startsWith('x')", None),
        ("event.tenant_id + ':' + event.kind", None),
        (f"{ISSUE}.labels[1].name", None),
    ],
)
def test_cel(source, expected):
    assert compile_cel(source).evaluate(EVENT) == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("event.kind == 'issues.opened'", True),
        ("event.kind == 'x'", False),
        ("event.absent", False),
        ("event.tenant_id", False),
    ],
)
def test_a_predicate(source, expected):
    assert compile_cel(source).holds(EVENT) is expected


@pytest.mark.parametrize("source", ["event.kind", "1", "event.headers"])
def test_a_predicate_gives_a_boolean(source):
    with pytest.raises(ExpressionError, match="a predicate gives true or false"):
        compile_cel(source).holds(EVENT)


@pytest.mark.parametrize(
    "source",
    [
        "event.kind + 1",
        "event.kind.nothing",
        "event.kind.startWith('x')",
        "nothing(event.kind)",
        "1 / 0",
        "int('x')",
        "event.kind.matches('[')",
        "event.kind + 1 == event.tenant_id",
    ],
)
def test_a_failure_is_no_missing_field(source):
    with pytest.raises(ExpressionError) as caught:
        compile_cel(source).evaluate(EVENT)
    assert str(caught.value).startswith(f"`{source}` failed: ")
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("", "an empty text is not valid CEL"),
        ("  ", "an empty text is not valid CEL"),
        ("1 +", "`1 +` is not valid CEL, at 1:4: Syntax error: mismatched input '<EOF>'"),
        ("event..a", "`event..a` is not valid CEL, at 1:7: Syntax error: no viable alternative"),
        ("tenant", "`tenant` reads `tenant`, which does not exist: a CEL expression sees `event`"),
        ("event.l.all(x, y)", "`event.l.all(x, y)` reads `y`, which does not exist: a CEL"),
        ("event" + ".a" * 1000, "`event.a.a.a"),
        ("(" * 900 + "1" + ")" * 900, "`((((((("),
    ],
)
def test_cel_that_cannot_be_compiled(source, expected):
    with pytest.raises(ExpressionError) as caught:
        compile_cel(source)
    assert str(caught.value).startswith(expected)
    assert "\n" not in str(caught.value)


def test_the_longest_expression_is_within_the_stack_of_a_thread():
    chain = "event" + ".a" * ((SOURCE_LIMIT - 5) // 2)
    negations = "!" * (SOURCE_LIMIT - 7) + "event.a"
    with ThreadPoolExecutor(1) as pool:
        for source in (chain, negations):
            assert pool.submit(compile_cel, source).result().evaluate({}) is None


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("event.headers.tenant", "acme"),
        ('event.headers."x-github-event"', "issues"),
        ("event.provider_payload.raw.action", "opened"),
        ("event.absent.further", None),
        ("event.provider_payload.raw.issue.labels[?name=='bug'] | [0].name", "bug"),
        ("event.kind == 'issues.opened' && event.provider", "github"),
        ("!(event.headers.absent)", True),
        ("join(':', [event.provider, event.kind])", "github:issues.opened"),
        ("'constant'", "constant"),
        ("`true`", True),
        ("keys(event.headers)", ["tenant", "x-github-event", "a.b"]),
        ("sort_by(event.provider_payload.raw.issue.labels[?name], &name)[0].name", "bug"),
    ],
)
def test_jmespath(source, expected):
    assert compile_jmespath(source).evaluate({"event": EVENT}) == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("", "an empty text is not valid JMESPath"),
        ("event.", "`event.` is not valid JMESPath: "),
        ("event[", "`event[` is not valid JMESPath: "),
        ("a" * 2001, f"`{'a' * 200}…` has 2001 characters; at most 2000 are allowed"),
        ("!" * 1990 + "event", "`!!!!"),
        ("payload.x", "`payload.x` reads `payload`, which does not exist: a JMESPath expression"),
        ("event.a && kind", "`event.a && kind` reads `kind`, which does not exist"),
        ("!event.headers.b", "`!event.headers.b` is always null: in JMESPath `!a.b` means"),
        ("length(kind)", "`length(kind)` reads `kind`, which does not exist"),
    ],
)
def test_jmespath_that_cannot_be_compiled(source, expected):
    with pytest.raises(ExpressionError) as caught:
        compile_jmespath(source)
    assert str(caught.value).startswith(expected)


@pytest.mark.parametrize(
    "source", ["nothing(event)", "length(`1`)", "sort(event.l)", "abs(event.kind)"]
)
def test_jmespath_that_fails(source):
    with pytest.raises(ExpressionError, match="failed: "):
        compile_jmespath(source).evaluate({"event": {**EVENT, "l": [1, "a"]}})


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("event.headers.tenant", {"tenant"}),
        ('event.headers["x-a"] == event["headers"].b', {"x-a", "b"}),
        ("has(event . headers . a)", {"a"}),
        ('event.headers[r"x-a"] + "event.headers.nope"', {"x-a"}),
        ("event.headers['x\\x2da'] // event.headers.nope", {"x-a"}),
        ("event.headers.a.startsWith('x')", {"a"}),
        ("event.headers.size()", set()),
        ("event.headers.exists(h, h == 'a')", set()),
        ("event.provider_payload.headers.a", set()),
    ],
)
def test_headers_that_cel_names(source, expected):
    assert compile_cel(source).headers == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("event.headers.a", {"a"}),
        ('event.headers."x-a"', {"x-a"}),
        ("event.headers.[a, b]", {"a", "b"}),
        ("event.headers.{x: a}", {"a"}),
        ("event | headers | a", {"a"}),
        ("@.event.headers.a", {"a"}),
        ("length(event.headers.a)", {"a"}),
        ("event.headers.a == 'x' || !(event.headers.b)", {"a", "b"}),
        ("event.headers.*", set()),
        ("event.items[?headers.a].b", set()),
        ("'event.headers.a'", set()),
    ],
)
def test_headers_that_jmespath_names(source, expected):
    assert compile_jmespath(source).headers == expected


def test_paths_stop_where_a_call_or_an_index_begins():
    assert cel_paths("event.a.b.contains('x') && event.c[0].d == x.y") == [
        ("event", "a", "b"),
        ("event", "c"),
        ("x", "y"),
    ]


def test_cel_is_given_only_what_the_expression_names():
    class Untouchable:
        """Nothing that CEL could convert."""

    event = {"kind": "x", "provider_payload": {"raw": Untouchable(), "event": "y"}}
    expression = compile_cel("event.kind + event.provider_payload.event")
    assert expression.evaluate(event) == "xy"
    with pytest.raises(ExpressionError):
        compile_cel("event.provider_payload == null").evaluate(event)


def test_a_path_within_another_gives_the_whole():
    event = {"a": {"b": 1, "c": 2}}
    for source in ("event.a.b == 1 && size(event.a) == 2", "size(event.a) == 2 && event.a.b == 1"):
        assert compile_cel(source).evaluate(event) is True
    assert event == {"a": {"b": 1, "c": 2}}


def test_threads_share_a_compiled_expression():
    expression = compile_cel("event.n * 2")
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda n: expression.evaluate({"n": n}), range(500)))
    assert found == [n * 2 for n in range(500)]


def test_neither_package_is_imported_before_it_is_used():
    script = (
        "import sys, harn_temporal.expressions, harn_temporal.manifest\n"
        "print(sorted({'cel', 'jmespath', 'temporalio'} & sys.modules.keys()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"

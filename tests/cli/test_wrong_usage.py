"""Exit code 2: what was wrong, where, and what is allowed; nothing on stdout, no traceback."""

from __future__ import annotations

import pytest


def refused(ran):
    assert ran.code == 2, ran.err
    assert ran.out == ""
    assert "Traceback" not in ran.err
    assert ran.err.startswith("error: ")
    return ran.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fier"], "No such command 'fier'. Did you mean 'fire'?"),
        (["fire"], "Missing argument 'TRIGGER_ID'"),
        (["fire", "new-issue", "--wiat"], "No such option: --wiat"),
        (["worker", "--max-concurrent", "0"], "greater than or equal to 1"),
        (["graph", "x", "--format", "y"], "error: Invalid value for '--format': 'y' is not one of"),
        (["worker", "--max-concurrent", "x"], "should be a valid integer"),
        (["fire", "new-issue", "--header", "x"], "--header 'x' is not NAME=VALUE"),
        (["fire", "new-issue", "--header", "a b=1"], "neither blanks nor control characters"),
        (["ingest", "--provider", "x", "--kind", "y", "--header", "a\x1b=1"], "neither blanks"),
        (["fire", "new-issue", "--dedupe-key", ""], "--dedupe-key is empty"),
        (["fire", "new-issue", "--dedupe-key", " "], "--dedupe-key is empty"),
        (["fire", "new-issue", "--state-dir", "lib.py"], "lib.py is a file; name a directory"),
        (["fire", "new-issue", "--wait", "--state-dir", "lib.py/x"], "lib.py is a file"),
        (["queue", "ls", "--state-dir", "lib.py"], "lib.py is a file; name a directory"),
        (["trigger", "ls", "--state-dir", "lib.py"], "lib.py is a file; name a directory"),
        (["fire", "new-issue", "--tenant", "a b"], "tenant id 'a b' is not allowed"),
        (["fire", "new-issue", "--address", "localhost:1"], "--address and --profile go with"),
        (["fire", "new-issue", "--event", "e", "--kind", "k"], "--kind cannot change"),
        (["fire", "flaky", "--payload", "-"], "say with --kind what the payload is: flaky"),
        (["ingest"], "ingest needs --provider and --kind"),
        (["ingest", "--event", "e", "--kind", "k"], "--event is a whole event"),
    ],
)
def test_options(program, arguments, message):
    assert message in refused(program(*arguments))


def test_options_that_do_not_parse_name_the_help(program):
    assert "Try 'harn-temporal fire --help'." in refused(program("fire", "--nope"))


def test_a_trigger_with_a_typo_names_the_near_ones(program):
    message = refused(program("fire", "new-isue"))

    assert "has no trigger 'new-isue'; did you mean new-issue?" in message


def test_a_trigger_like_no_other_names_all(program):
    message = refused(program("fire", "zzz"))

    assert "it has new-issue, flaky, broken, parked, refused, slow, stuck" in message


def test_a_manifest_that_is_missing(program):
    assert "nothing.toml" in refused(program("fire", "x", "--config", "nothing.toml"))


def test_a_manifest_with_mistakes_reports_them_all(program):
    (program.folder / "bad.toml").write_text(
        '[package]\nname = "x y"\n\n[[triggers]]\nid = "a"\nkind = "webhok"\nprovider = "github"\n'
        'match = { events = [] }\nhandler = "ftp://x"\ntimeout = "soon"\n'
    )

    message = refused(program("fire", "a", "--config", "bad.toml"))

    assert "4 problems" in message
    for word in ("x y", "webhok", "ftp", "soon"):
        assert word in message


def test_a_handler_that_does_not_load_is_found_where_handlers_run(program):
    (program.folder / "lib.py").write_text("def greet(event)\n    return 1\n")

    assert "lib.py" in refused(program("fire", "new-issue", "--wait"))
    assert "lib.py" in refused(program("up"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{\n  "a": 1,\n  "b" 2\n}', "is not JSON: Expecting ':' delimiter at line 3, column 7"),
        (b"", "is not JSON: Expecting value at line 1, column 1"),
        (b'{"a": "\xff"}', "is not UTF-8 at byte 8"),
        (b'{"a": NaN}', "cannot be used: JSON has no NaN"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"a": ' + b"9" * 5000 + b"}", "cannot be used: Exceeds the limit"),
    ],
)
def test_a_payload_that_is_no_json(program, content, message):
    (program.folder / "payload.json").write_bytes(content)

    found = refused(program("fire", "new-issue", "--payload", "payload.json"))
    assert f"payload.json {message}" in found or f"payload.json is {message}" in found
    assert "stdin " in refused(program("fire", "new-issue", "--payload", "-", stdin=content))


def test_a_payload_file_that_cannot_be_read(program):
    assert "cannot read nothing.json: No such file" in refused(
        program("fire", "new-issue", "--payload", "nothing.json")
    )
    assert "cannot read .: Is a directory" in refused(
        program("fire", "new-issue", "--payload", ".")
    )


def test_an_event_with_missing_fields_names_them(program):
    message = refused(program("fire", "new-issue", "--event", "-", stdin='{"id": "x"}'))

    for name in ("provider", "kind", "dedupe_key", "trace_id"):
        assert name in message


def test_adopting_without_a_pump(program):
    message = refused(program("worker", "--no-pump", "--adopt-foreign"))

    assert "--adopt-foreign is about the pump, which --no-pump leaves out" in message


def test_the_store_has_its_metrics_from_whose_pump_runs(program):
    for given in (("--no-pump",), ("--metrics-port", "0"), ()):
        message = refused(program("worker", "--store-metrics", *given))

        assert "--store-metrics goes with --no-pump and --metrics-port" in message

import os
import sys

import pytest

from harn_temporal.errors import HandlerLoadError


def problem(loader, name):
    with pytest.raises(HandlerLoadError) as caught:
        loader.load(name)
    return str(caught.value)


@pytest.mark.parametrize(
    ("source", "is_async", "wants_context"),
    [
        ("def on(event): ...", False, False),
        ("def on(event, context): ...", False, True),
        ("async def on(event): ...", True, False),
        ("async def on(event, context): ...", True, True),
        ("def on(anything, at_all): ...", False, True),
        ("def on(event, context=None): ...", False, True),
        ("def on(event, limit=3): ...", False, False),
        ("def on(event, context, limit=3): ...", False, True),
        ("def on(event, /, context): ...", False, True),
        ("def on(event, *, limit=3): ...", False, False),
        ("def on(event, **options): ...", False, False),
        (
            "import functools\ndef both(event, limit): ...\non = functools.partial(both, limit=3)",
            False,
            False,
        ),
        (
            "import functools\nasync def both(limit, event): ...\non = functools.partial(both, 3)",
            True,
            False,
        ),
        ("class On:\n async def __call__(self, event, context): ...\non = On()", True, True),
        ("class On:\n def handle(self, event): ...\non = On().handle", False, False),
        (
            "import functools\ndef a(event, context): ...\n@functools.wraps(a)\ndef on(*_): ...",
            False,
            True,
        ),
    ],
)
def test_signatures_that_a_handler_may_have(folder, source, is_async, wants_context):
    handler = folder({"lib.py": source}).load("on")
    assert (handler.name, handler.is_async, handler.wants_context) == (
        "on",
        is_async,
        wants_context,
    )


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("def on(): ...", "takes ()"),
        ("def on(a, b, c): ...", "takes (a, b, c)"),
        ("def on(event, *, must): ...", "takes (event, *, must)"),
        ("def on(*, event): ...", "takes (*, event)"),
        ("def on(*args): ...", "takes (*args), which leaves open"),
        ("def on(event, *rest): ...", "takes (event, *rest), which leaves open"),
        ("def on(event): yield 1", "uses yield"),
        ("async def on(event): yield 1", "uses yield"),
    ],
)
def test_a_wrong_signature_names_the_line_and_what_is_allowed(folder, tmp_path, source, found):
    message = problem(folder({"lib.py": "\n\n" + source}), "on")
    assert message.startswith(f'handler "on" ({tmp_path}/triage/lib.py:3) {found}')
    if "yield" not in found:
        assert "a handler takes (event) or (event, context)" in message


def test_a_missing_function_is_named_with_the_nearest(folder, tmp_path):
    loader = folder({"lib.py": "def on_new_issue(event): ...\ndef on_push(event): ..."})
    assert problem(loader, "on_new_isue") == (
        f'handler "on_new_isue": {tmp_path}/triage/lib.py has no function on_new_isue; '
        "did you mean on_new_issue?"
    )
    assert problem(loader, "zzz").endswith("has no function zzz; it has on_new_issue, on_push")


@pytest.mark.parametrize(
    ("source", "kind"), [("on = 3", "int"), ("class on:\n def __init__(self, event): ...", "type")]
)
def test_what_is_no_function_is_no_handler(folder, source, kind):
    assert f"is a {kind}, not a function" in problem(folder({"lib.py": source}), "on")


def test_a_syntax_error_names_file_and_line(folder, tmp_path):
    message = problem(folder({"lib.py": "x = 1\ndef on(event:\n    pass\n"}), "on")
    assert message.startswith(f'handler "on": {tmp_path}/triage/lib.py:2: SyntaxError: ')


def test_an_error_in_an_import_names_the_innermost_line_of_the_folder(folder, tmp_path):
    loader = folder(
        {
            "lib.py": "import json\nimport helper\ndef on(event): ...",
            "helper.py": "import json\n\njson.loads('{')\n",
        }
    )
    assert problem(loader, "on").startswith(
        f'handler "on": {tmp_path}/triage/helper.py:3: JSONDecodeError: '
    )


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("import not_there", "ModuleNotFoundError: No module named 'not_there'"),
        ("import helper.not_there", "ModuleNotFoundError: No module named 'helper.not_there'"),
        ("from helper import nothing", "ImportError: cannot import name 'nothing' from 'helper'"),
        ("raise SystemExit(4)", "SystemExit: 4"),
    ],
)
def test_errors_of_an_import_show_the_names_that_the_author_wrote(folder, line, error):
    loader = folder({"lib.py": f"{line}\ndef on(event): ...", "helper.py": ""})
    message = problem(loader, "on")
    assert f"lib.py:1: {error}" in message
    assert "_harn_handlers" not in message


def test_a_missing_file_and_a_missing_export_say_what_to_do(folder, tmp_path):
    loader = folder({}, {"handlers": "lib.py"})
    assert f"there is no file {tmp_path}/triage/lib.py" in problem(loader, "on")
    assert f"there is no file {tmp_path}/triage/lib.py" in problem(loader, "handlers::on")
    assert (
        problem(loader, "other::on")
        == 'handler "other::on": [exports] has no "other"; it has handlers. '
        'Add a line such as other = "lib.py"'
    )


def test_a_file_outside_the_folder_is_refused(folder):
    loader = folder({"../lib.py": "def on(event): ..."}, {"handlers": "../lib.py"})
    assert "name a file in the folder of the manifest" in problem(loader, "handlers::on")


@pytest.mark.parametrize(
    ("target", "file"),
    [
        ("lib.harn", "lib.py"),
        ("lib.py", "lib.py"),
        ("./lib.py", "lib.py"),
        ("src/handlers.harn", "src/handlers.py"),
        ("src/handlers.py", "src/handlers.py"),
        ("src.handlers", "src/handlers.py"),
        ("acme", "acme/__init__.py"),
        ("my-handlers.py", "my-handlers.py"),
    ],
)
def test_what_an_export_may_be(folder, tmp_path, target, file):
    loader = folder({file: "def on(event): ..."}, {"handlers": target})
    code = loader.load("handlers::on").function.__code__
    assert code.co_filename == str(tmp_path / "triage" / file)


def test_an_export_may_be_an_installed_module(folder):
    import json

    handler = folder({}, {"handlers": "json.decoder"})
    assert "has no function on" in problem(handler, "handlers::on")
    loaded = folder({}, {"handlers": "json"}, name="other").load("handlers::loads")
    assert loaded.function is json.loads


def test_two_manifests_with_a_lib_live_in_one_process(folder):
    before = set(sys.modules)
    path = list(sys.path)
    files = {"lib.py": "import helper\ndef on(event): return helper.NAME", "helper.py": "NAME = {}"}
    first, second = (
        folder({**files, "helper.py": f"NAME = {name!r}"}, name=name).load("on")
        for name in ("first", "second")
    )
    assert (first.function(None), second.function(None)) == ("first", "second")
    assert sys.path == path
    assert {name for name in set(sys.modules) - before if not name.startswith("_harn_")} == set()


def test_imports_within_the_folder(folder):
    loader = folder(
        {
            "lib.py": """
                import pkg.inner
                import pkg.inner as inner
                from pkg import inner as third
                from pkg.inner import VALUE
                from . import helper
                from .helper import *
                import json
                import os.path

                def on(event):
                    import late
                    return [
                        pkg.inner.VALUE, inner.VALUE, third.VALUE, VALUE,
                        helper.VALUE, ALSO, late.VALUE, json.dumps({}), os.path.basename("/a/b"),
                    ]
            """,
            "helper.py": "VALUE = 'helper'\nALSO = 'also'\n__all__ = ['ALSO']",
            "late.py": "VALUE = 'late'",
            "pkg/__init__.py": "",
            "pkg/inner.py": "import helper\nVALUE = helper.VALUE + '/inner'",
        }
    )
    assert loader.load("on").function(None) == [
        *["helper/inner"] * 4,
        "helper",
        "also",
        "late",
        "{}",
        "b",
    ]


def test_a_sibling_shadows_the_library_for_its_own_folder_only(folder):
    loader = folder({"lib.py": "import queue\ndef on(event): return queue", "queue.py": "MINE = 1"})
    mine = loader.load("on").function(None)
    import queue

    assert mine.MINE == 1
    assert mine is not queue
    assert not hasattr(queue, "MINE")


def test_a_plain_folder_does_not_hide_a_module(folder):
    loader = folder(
        {
            "lib.py": "import json\nimport data\ndef on(event): return json, data",
            "json/notes.txt": "",
            "data/numbers.py": "",
        }
    )
    import json

    seen_json, seen_data = loader.load("on").function(None)
    assert seen_json is json
    assert next(iter(seen_data.__path__)).endswith("/triage/data")


def test_one_module_runs_once_for_a_loader_and_anew_for_the_next(folder):
    source = "runs = []\nruns.append(1)\ndef on(event): return runs\ndef two(event): return runs"
    loader = folder({"lib.py": source})
    assert loader.load("on").function(None) is loader.load("two").function(None)
    assert loader.load("on").function(None) == [1]
    changed = folder({"lib.py": source.replace("append(1)", "append(2)")})
    assert changed.load("on").function(None) == [2]
    assert loader.load("on").function(None) == [1]


def test_no_bytecode_is_left_in_the_folder(folder, tmp_path):
    folder({"lib.py": "import helper\ndef on(event): ...", "helper.py": ""}).load("on")
    assert sorted(path.name for path in (tmp_path / "triage").iterdir()) == ["helper.py", "lib.py"]


def test_dataclasses_and_models_work_in_a_handler_module(folder):
    source = """
        from __future__ import annotations
        from dataclasses import dataclass
        from pydantic import BaseModel

        @dataclass
        class Row:
            name: str

        class Answer(BaseModel):
            rows: list[Inner]

        class Inner(BaseModel):
            n: int

        def on(event):
            return Answer(rows=[Inner(n=1)])
    """
    assert folder({"lib.py": source}).load("on").function(None).model_dump() == {"rows": [{"n": 1}]}


def test_a_file_written_within_the_clocks_grain_is_seen(folder, tmp_path):
    folder({"lib.py": "def on(event): ..."}).load("on")
    written = (tmp_path / "triage").stat()
    loader = folder(
        {"lib.py": "import new\ndef on(event): return new.VALUE", "new.py": "VALUE = 1"}
    )
    os.utime(tmp_path / "triage", ns=(written.st_atime_ns, written.st_mtime_ns))
    assert loader.load("on").function(None) == 1

from __future__ import annotations

import re
from pathlib import Path

import pytest

from harn_temporal.manifest import load_manifest
from harn_temporal.manifest.keys import UNUSED_ORCHESTRATOR_KEYS, UNUSED_TRIGGER_KEYS

PAGE = (Path(__file__).parents[2] / "docs" / "manifest.md").read_text()
EXAMPLE, GATES = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
HANDLERS = """
def should_handle(event):
    return True

async def on_new_issue(event, context):
    return None

def on_urgent(event):
    return None
"""


def test_the_example_loads_without_a_warning(tmp_path):
    (tmp_path / "lib.py").write_text(HANDLERS)
    (tmp_path / "harn.toml").write_text(EXAMPLE)
    manifest = load_manifest(tmp_path / "harn.toml")
    assert [each.trigger_id for each in manifest.bindings] == [
        "new-issue",
        "urgent.tickets",
        "urgent.source-2",
    ]
    assert manifest.warnings == ()


@pytest.mark.parametrize("line", GATES.splitlines())
def test_each_gate_of_the_page_is_one_of_the_binding(tmp_path, line):
    key = line.partition(" ")[0]
    needed = "concurrency = { max = 1 }\n" if key == "priority" else ""
    (tmp_path / "harn.toml").write_text(
        '[package]\nname="p"\n[[triggers]]\nid="a"\nkind="webhook"\nprovider="p"\nmatch={}\n'
        f'handler="run"\n{needed}{line}\n'
    )
    [binding] = load_manifest(tmp_path / "harn.toml", load_handlers=False).bindings
    assert binding.gates is not None
    assert getattr(binding.gates, "concurrency" if key == "budget" else key) is not None


@pytest.mark.parametrize("key", sorted(UNUSED_TRIGGER_KEYS | UNUSED_ORCHESTRATOR_KEYS))
def test_each_key_that_is_kept_is_on_the_page(key):
    assert f"`{key.replace('-', '_')}`" in PAGE

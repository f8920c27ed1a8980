"""Gates that change, or go, in the manifest while dispatches wait at them."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from harn_temporal.manifest import load_manifest

CHANGES = {"more": "concurrency = { max = 5 }", "gone": ""}
SOON = timedelta(seconds=0.1)


@pytest.mark.parametrize("change", CHANGES)
async def test_who_waits_does_so_under_the_version_it_began_with(make_gated, change):
    gated = await make_gated("held", "concurrency = { max = 1 }")
    path = gated.manifest.path
    async with gated.worker(grace=SOON):
        first = await gated.start(0)
        await gated.begun(0)
        waiting = [await gated.start(number) for number in (1, 2)]
        for handle in waiting:
            await gated.phase(handle, "gate_wait")
    path.write_text(path.read_text().replace("concurrency = { max = 1 }", CHANGES[change]))
    gated.manifest = load_manifest(path)
    async with gated.worker():
        newcomer = await gated.start(3)
        await gated.begun(3)
        assert not (gated.folder / "begun-1").exists()
        for number in range(4):
            gated.let_go(number)
        outcomes = await gated.outcomes([first, *waiting, newcomer])
    assert [(each.status, each.result) for each in outcomes] == [
        ("succeeded", number) for number in range(4)
    ]
    assert [each.binding_key for each in outcomes] == ["gated@v1"] * 3 + ["gated@v2"]
    kinds = await gated.kinds("concurrency")
    assert kinds.count("concurrency_acquired") == kinds.count("concurrency_released")


@pytest.mark.parametrize(
    ("before", "after"),
    [('period = "2s", max = 1', 'period = "1s", max = 5'), ('period = "1s", max = 1', None)],
)
async def test_a_throttle_that_changes_while_dispatches_wait(make_gated, before, after):
    gated = await make_gated("works", f"throttle = {{ {before} }}")
    path = gated.manifest.path
    async with gated.worker():
        handles = list(await asyncio.gather(*(gated.start(number) for number in range(3))))

        async def waits():
            return "throttle_wait" in await gated.kinds("throttle")

        await gated.until(waits)
    changed = "" if after is None else f"throttle = {{ {after} }}"
    path.write_text(path.read_text().replace(f"throttle = {{ {before} }}", changed))
    gated.manifest = load_manifest(path)
    async with gated.worker():
        handles += [await gated.start(number) for number in range(3, 6)]
        outcomes = await gated.outcomes(handles)
    assert [each.result for each in outcomes] == list(range(6))

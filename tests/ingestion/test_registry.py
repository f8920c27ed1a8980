from __future__ import annotations

import asyncio

import pytest

from harn_temporal.bindings import Binding
from harn_temporal.eventlog import open_event_log
from harn_temporal.eventlog.records import Append
from harn_temporal.eventlog.topics import TRIGGERS_LIFECYCLE
from harn_temporal.registry import register


async def transitions(log, after: int = 0) -> list[tuple[str, str | None, str]]:
    return [
        (
            record.payload["binding_key"],
            record.payload["from_state"],
            record.payload["to_state"],
        )
        for record in await log.read(TRIGGERS_LIFECYCLE, after=after)
    ]


async def head(log) -> int:
    return await log.query(lambda reader: reader.head(TRIGGERS_LIFECYCLE))


async def live(log) -> list[tuple[str, str]]:
    states = await log.query(lambda reader: reader.bindings.states())
    return [(state.package, state.binding_key) for state in states if state.state == "active"]


def keys(bindings: tuple[Binding, ...]) -> list[str]:
    return [binding.binding_key for binding in bindings]


async def test_a_first_registration_in_full(log, clock, make_binding) -> None:
    (registered,) = await register(log, "triage", [make_binding(version=0)])
    assert registered == make_binding(version=1)
    first, second = await log.read(TRIGGERS_LIFECYCLE)
    shared = {
        "id": "new-issue",
        "binding_key": "new-issue@v1",
        "version": 1,
        "provider": "github",
        "kind": "webhook",
        "source": "manifest",
        "handler_kind": "local",
        "definition_fingerprint": "new-issue-1",
        "package": "triage",
    }
    assert first.payload == {
        **shared,
        "from_state": None,
        "to_state": "registering",
        "definition": registered.model_dump(mode="json"),
    }
    assert second.payload == {**shared, "from_state": "registering", "to_state": "active"}
    for record in (first, second):
        assert (record.kind, record.occurred_at_ms) == ("state_transition", clock.now_ms)
        assert all(name.startswith("harn.provenance.") for name in record.headers)


async def test_the_definition_of_a_version_can_be_read_back(log, make_binding) -> None:
    (registered,) = await register(log, "triage", [make_binding(filter="event.kind")])
    found = await log.query(lambda reader: reader.bindings.definition("new-issue", 1))
    assert Binding.model_validate(found) == registered


async def test_registering_the_same_again_appends_nothing(log, make_binding) -> None:
    bindings = [make_binding(), make_binding("second")]
    first = await register(log, "triage", bindings)
    before = await head(log)
    assert await register(log, "triage", bindings) == first
    assert await head(log) == before == 4


async def test_a_changed_definition_gets_the_next_version_and_ends_the_old_one(
    log, make_binding
) -> None:
    await register(log, "triage", [make_binding()])
    before = await head(log)
    changed = await register(log, "triage", [make_binding(fingerprint="changed")])
    assert keys(changed) == ["new-issue@v2"]
    assert await transitions(log, after=before) == [
        ("new-issue@v1", "active", "draining"),
        ("new-issue@v1", "draining", "terminated"),
        ("new-issue@v2", None, "registering"),
        ("new-issue@v2", "registering", "active"),
    ]
    assert await live(log) == [("triage", "new-issue@v2")]


async def test_a_trigger_that_is_gone_is_ended_and_comes_back_under_its_version(
    log, make_binding
) -> None:
    both = [make_binding(), make_binding("second")]
    await register(log, "triage", both)
    await register(log, "triage", both[:1])
    assert await live(log) == [("triage", "new-issue@v1")]
    before = await head(log)
    assert keys(await register(log, "triage", both)) == ["new-issue@v1", "second@v1"]
    assert await transitions(log, after=before) == [
        ("second@v1", "terminated", "registering"),
        ("second@v1", "registering", "active"),
    ]


async def test_two_manifests_that_take_turns_keep_their_versions(log, make_binding) -> None:
    one, two = [make_binding(fingerprint="one")], [make_binding(fingerprint="two")]
    found = [keys(await register(log, "triage", each)) for each in (one, two, one, two, one)]
    assert found == [
        ["new-issue@v1"],
        ["new-issue@v2"],
        ["new-issue@v1"],
        ["new-issue@v2"],
        ["new-issue@v1"],
    ]
    assert await live(log) == [("triage", "new-issue@v1")]


async def test_packages_share_the_numbers_of_a_trigger_id_and_leave_each_other_alone(
    log, make_binding
) -> None:
    binding = make_binding()
    assert keys(await register(log, "one", [binding])) == ["new-issue@v1"]
    (other,) = await register(log, "two", [binding])
    assert (other.package, other.binding_key) == ("two", "new-issue@v2")
    before = await head(log)
    assert keys(await register(log, "one", [binding])) == ["new-issue@v1"]
    assert await head(log) == before
    await register(log, "one", [])
    assert await live(log) == [("two", "new-issue@v2")]


async def test_versions_survive_a_restart(settings, clock, make_binding) -> None:
    if settings.path is None:
        pytest.skip("memory forgets, as it should")
    one, two = [make_binding(fingerprint="one")], [make_binding(fingerprint="two")]
    for bindings, expected in ((one, "new-issue@v1"), (two, "new-issue@v2"), (one, "new-issue@v1")):
        log = await open_event_log(settings, clock)
        assert keys(await register(log, "triage", bindings)) == [expected]
        await log.close()


async def test_versions_survive_a_rebuild(log, make_binding) -> None:
    await register(log, "triage", [make_binding(fingerprint="one")])
    await register(log, "triage", [make_binding(fingerprint="two")])
    await log.rebuild()
    assert keys(await register(log, "triage", [make_binding(fingerprint="one")])) == [
        "new-issue@v1"
    ]
    assert keys(await register(log, "triage", [make_binding(fingerprint="three")])) == [
        "new-issue@v3"
    ]


async def test_two_processes_that_register_at_once_agree(two_logs, make_binding) -> None:
    bindings = [make_binding(), make_binding("second")]
    async with two_logs() as logs:
        found = await asyncio.gather(*(register(log, "triage", bindings) for log in (*logs, *logs)))
        assert [keys(each) for each in found] == [["new-issue@v1", "second@v1"]] * 4
        assert await head(logs[0]) == 4


async def test_a_version_left_in_another_state_is_brought_to_where_it_should_be(
    log, make_binding
) -> None:
    bindings = [make_binding(), make_binding("second"), make_binding("third")]
    registered = await register(log, "triage", bindings)
    for binding, state in zip(registered, ("draining", "registering", "unheard-of"), strict=True):
        payload = {
            "id": binding.trigger_id,
            "binding_key": binding.binding_key,
            "version": binding.version,
            "provider": binding.provider,
            "kind": binding.kind,
            "source": "manifest",
            "handler_kind": "local",
            "definition_fingerprint": binding.fingerprint,
            "package": "triage",
            "from_state": "active",
            "to_state": state,
        }
        await log.append([Append(TRIGGERS_LIFECYCLE, "state_transition", payload)])
    before = await head(log)
    await register(log, "triage", bindings)
    assert await transitions(log, after=before) == [
        ("new-issue@v1", "draining", "active"),
        ("second@v1", "registering", "active"),
        ("third@v1", "unheard-of", "registering"),
        ("third@v1", "registering", "active"),
    ]

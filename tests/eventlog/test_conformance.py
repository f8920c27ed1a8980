"""What every backend does the same. `lab` is one of each in turn."""

from __future__ import annotations

import asyncio
import math
import threading

import pytest

from harn_temporal.errors import NotJsonError, StoreError
from harn_temporal.eventlog.log import Append, ConsumerCursor, TopicHead
from harn_temporal.headers import IDEMPOTENCY_KEY, OUTCOME, PACKAGE, WORKFLOW_ID
from harn_temporal.inspection.chain import verify

BOUND = 30


def note(text="hello", topic="notes"):
    return Append(topic, "noted", {"text": text})


def claim(key="k1", expires_at_ms=0, package="demo", topic="trigger.inbox.claims"):
    payload = {"binding_id": "triage", "dedupe_key": key, "expires_at_ms": expires_at_ms}
    return Append(topic, "dedupe_claim", payload, {PACKAGE: package})


def ended(workflow_id="w", status="succeeded", topic="trigger.outbox"):
    headers = {WORKFLOW_ID: workflow_id, OUTCOME: status}
    return Append(topic, "dispatch_succeeded", {}, headers)


def transition(version=1, to_state="registering", fingerprint="f1", **more):
    payload = {
        "id": "triage",
        "binding_key": f"triage@v{version}",
        "version": version,
        "provider": "github",
        "kind": "webhook",
        "source": "manifest",
        "handler_kind": "local",
        "definition_fingerprint": fingerprint,
        "from_state": None,
        "to_state": to_state,
    }
    return Append("triggers.lifecycle", "state_transition", payload | more)


def is_of(topic: str, records) -> list[int]:
    return [record.event_id for record in records if record.topic == topic]


# Appending and reading


async def test_ids_count_from_one_in_each_topic(log):
    first = await log.append([note("a"), note("b", "other"), note("c")])
    second = await log.append([note("d", "other")])
    assert first.fresh
    assert [(r.topic, r.event_id) for r in first.records] == [
        ("notes", 1),
        ("other", 1),
        ("notes", 2),
    ]
    assert is_of("other", second.records) == [2]
    assert [r.payload["text"] for r in await log.read("notes")] == ["a", "c"]
    assert [r.payload["text"] for r in await log.read("other")] == ["b", "d"]


async def test_what_is_read_is_what_append_returned(log, lab):
    lab.clock.now_ms = 1234
    item = Append("t", "kind", {"z": [1, 2.5, None, True], "a": {"é": "✓"}}, {"h": "v"})
    dated = Append("t", "kind", "text", occurred_at_ms=-5)
    appended = await log.append([item, dated])
    assert await log.read("t") == list(appended.records)
    first, second = appended.records
    assert first.payload == {"z": [1, 2.5, None, True], "a": {"é": "✓"}}
    assert first.raw == '{"a":{"é":"✓"},"z":[1,2.5,null,true]}'.encode()
    assert first.headers["h"] == "v"
    assert first.occurred_at_ms == 1234
    assert second.occurred_at_ms == -5


async def test_reads_begin_strictly_after_an_id_and_end_at_the_limit(log):
    await log.append([note(str(n)) for n in range(1, 8)])
    assert is_of("notes", await log.read("notes", after=2, limit=3)) == [3, 4, 5]
    assert is_of("notes", await log.read("notes", after=6)) == [7]
    assert await log.read("notes", after=7) == []
    assert await log.read("nobody.wrote.here") == []


async def test_topics_are_found_by_prefix_in_order(log):
    await log.append([note(topic=name) for name in ("b", "a.x", "a_x", "a.y", "a.x")])
    assert await log.topics() == [
        TopicHead("a.x", 2),
        TopicHead("a.y", 1),
        TopicHead("a_x", 1),
        TopicHead("b", 1),
    ]
    assert await log.topics("a.") == [TopicHead("a.x", 2), TopicHead("a.y", 1)]
    assert await log.topics("z") == []


async def test_nothing_is_appended_by_an_empty_batch(log):
    appended = await log.append([], key="k")
    assert appended.records == ()
    assert appended.fresh
    assert await log.topics() == []


@pytest.mark.parametrize("topic", ["", "a/b", "..", "a b", "é", "a\x00", "a\n"])
async def test_what_is_no_topic_is_refused(log, topic):
    if topic == "..":
        await log.append([note(topic=topic)])  # dots are allowed, and lead nowhere
        assert await log.topics() == [TopicHead("..", 1)]
        return
    with pytest.raises(StoreError, match="is no topic"):
        await log.append([note(), note(topic=topic)])
    with pytest.raises(StoreError, match="is no topic"):
        await log.read(topic)
    assert await log.topics() == []


async def test_what_is_no_json_is_refused_with_its_place_and_nothing_is_appended(log):
    with pytest.raises(NotJsonError, match=r"noted for topic notes.*\$\.text"):
        await log.append([note("fine"), note(math.nan)])
    assert await log.topics() == []
    assert is_of("notes", (await log.append([note()])).records) == [1]


async def test_any_text_survives(log):
    text = 'NUL \x00, newline \n, quote ", \u2028, \U0001f600, é'
    lone = "lone \ud800 half"
    appended = await log.append(
        [Append("t", "kind \x00 \ud800", {text: lone}, {"h \ud800": text, "n": lone})],
        key="k \ud800",
    )
    (record,) = await log.read("t")
    assert record == appended.records[0]
    assert record.payload == {text: "lone \ufffd half"}
    assert record.kind == "kind \x00 \ufffd"
    assert record.headers["h \ufffd"] == text
    assert record.headers["n"] == "lone \ufffd half"
    assert record.headers[IDEMPOTENCY_KEY] == "k \ufffd/0"
    assert not (await log.append([note()], key="k \ud800")).fresh
    assert (await verify(log, "t")).intact


async def test_large_payloads_survive(log):
    text = "x" * 3_000_000
    await log.append([note(text)])
    (record,) = await log.read("notes")
    assert record.payload == {"text": text}


# Idempotency


async def test_a_key_appends_once(log):
    first = await log.append([note("a"), note("b", "other")], key="w/1/start")
    again = await log.append([note("x", "third"), note("y"), note("z")], key="w/1/start")
    assert first.fresh
    assert not again.fresh
    assert again.records == first.records
    assert [head.last_id for head in await log.topics()] == [1, 1]


async def test_keys_that_resemble_each_other_are_different(log):
    for number, key in enumerate(["k", "k/0", "k/0/0", "K", "k ", ""], start=1):
        appended = await log.append([note(key)], key=key)
        assert appended.fresh
        assert is_of("notes", appended.records) == [number]
    assert [r.payload["text"] for r in (await log.append([], key="k/0")).records] == ["k/0"]


async def test_a_key_is_found_in_the_transaction_that_used_it(log):
    def work(transaction):
        first = transaction.append([note("a"), note("b")], key="k")
        again = transaction.append([note("c")], key="k")
        return first, again, transaction.written("k"), transaction.written("l")

    first, again, written, unwritten = await log.transact(work)
    assert again.records == first.records == written
    assert not again.fresh
    assert unwritten == ()


async def test_a_key_of_a_transaction_that_failed_is_free(log):
    def work(transaction):
        transaction.append([note("lost")], key="k")
        raise LookupError

    with pytest.raises(LookupError):
        await log.transact(work)
    assert (await log.append([note("kept")], key="k")).fresh
    assert [r.payload["text"] for r in await log.query(lambda r: r.written("k"))] == ["kept"]


async def test_a_key_that_another_program_copied_counts(log, lab):
    await lab.foreign("notes", "noted", {"text": "theirs"}, {IDEMPOTENCY_KEY: "k/0"})
    again = await log.append([note("ours")], key="k")
    assert not again.fresh
    assert again.records[0].payload == {"text": "theirs"}


# Transactions


async def test_a_transaction_that_raises_leaves_nothing(log):
    await log.append([note("before")])
    error = LookupError("mine")

    def work(transaction):
        transaction.append([note("lost"), ended(), claim(expires_at_ms=10**15)])
        transaction.ack("notes", "reader", 2)
        raise error

    with pytest.raises(LookupError) as caught:
        await log.transact(work)
    assert caught.value is error
    assert await log.topics() == [TopicHead("notes", 1)]

    def look(reader):
        return (
            reader.inbox.outcome("w"),
            reader.inbox.claim_expiry("demo", "triage", "k1"),
            reader.cursor("notes", "reader"),
        )

    assert await log.query(look) == (None, None, 0)
    await log.append([note("after")])
    assert [r.payload["text"] for r in await log.read("notes")] == ["before", "after"]
    assert (await verify(log, "notes")).intact


async def test_what_was_rolled_back_is_no_link_of_the_chain(log, lab):
    await log.append([note("one")])

    def work(transaction):
        transaction.append([note("lost")])
        raise LookupError

    with pytest.raises(LookupError):
        await log.transact(work)
    await lab.foreign("notes", "noted", {"text": "theirs"})
    await log.append([note("three")])
    assert (await verify(log, "notes")).intact


async def test_our_own_records_are_not_folded_a_second_time(log):
    await log.append([ended("w")])
    assert await log._in_writer(log._writer.behind) is False


async def test_a_transaction_sees_what_it_did(log, lab):
    def work(transaction):
        before = transaction.head("notes"), transaction.inbox.outcome("w")
        transaction.append([note("a"), ended()])
        transaction.append([note("b")])
        transaction.ack("notes", "reader", 1)
        return (
            before,
            transaction.head("notes"),
            [r.payload["text"] for r in transaction.read("notes")],
            transaction.inbox.outcome("w").status,
            transaction.cursor("notes", "reader"),
            transaction.now_ms,
        )

    assert await log.transact(work) == ((0, None), 2, ["a", "b"], "succeeded", 1, lab.clock.now_ms)


async def test_a_query_cannot_append(log):
    assert not hasattr(await log.query(lambda reader: reader), "append")


async def test_the_event_loop_runs_while_the_store_works(log):
    begun, go_on = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def work(transaction):
        loop.call_soon_threadsafe(begun.set)
        assert go_on.wait(BOUND)
        return transaction.append([note()]).fresh

    running = asyncio.create_task(log.transact(work))
    await asyncio.wait_for(begun.wait(), BOUND)
    go_on.set()
    assert await running


async def test_a_caller_that_is_cancelled_leaves_the_store_whole(log):
    begun, go_on = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def work(transaction):
        loop.call_soon_threadsafe(begun.set)
        assert go_on.wait(BOUND)
        transaction.append([note("of the cancelled")])

    running = asyncio.create_task(log.transact(work))
    await asyncio.wait_for(begun.wait(), BOUND)
    waiting = asyncio.create_task(log.append([note("never begun")]))
    await asyncio.sleep(0)
    running.cancel()
    waiting.cancel()
    for task in (running, waiting):
        with pytest.raises(asyncio.CancelledError):
            await task
    go_on.set()
    await log.append([note("next")])
    texts = [r.payload["text"] for r in await log.read("notes")]
    assert texts == ["of the cancelled", "next"]
    assert (await verify(log, "notes")).intact


async def test_close_waits_for_what_runs_and_ends_all_use(log):
    begun, go_on = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def work(transaction):
        loop.call_soon_threadsafe(begun.set)
        assert go_on.wait(BOUND)
        return transaction.append([note()]).fresh

    mark = await log.changed(0, 0)
    running = asyncio.create_task(log.transact(work))
    waiting = asyncio.create_task(log.changed(mark + 1000, BOUND))
    await asyncio.wait_for(begun.wait(), BOUND)
    closing = asyncio.create_task(log.close())
    await asyncio.sleep(0)
    assert not closing.done()
    go_on.set()
    await closing
    assert await running
    with pytest.raises(StoreError, match="closed"):
        await waiting
    for use in (log.append([note()]), log.read("t"), log.topics(), log.changed(0, 1)):
        with pytest.raises(StoreError, match="closed"):
            await use
    with pytest.raises(StoreError, match="closed"):
        await log.rebuild()
    await log.close()


# Consumers


async def test_a_cursor_moves_forward_only(log, lab):
    def ack(cursor):
        return lambda transaction: transaction.ack("notes", "reader", cursor)

    def look(reader):
        return reader.cursor("notes", "reader"), reader.consumer("notes", "reader")

    assert await log.query(look) == (0, None)
    await log.transact(ack(7))
    assert await log.query(look) == (7, ConsumerCursor(7, lab.clock.now_ms))
    lab.clock.now_ms += 15_000
    await log.transact(ack(3))
    assert await log.query(look) == (7, ConsumerCursor(7, lab.clock.now_ms))
    await log.transact(ack(2**40))
    assert await log.query(lambda r: r.cursor("notes", "reader")) == 2**40
    assert await log.query(lambda r: r.cursor("notes", "other")) == 0
    assert await log.query(lambda r: r.cursor("other", "reader")) == 0


# Waiting


async def test_a_first_look_returns_at_once_and_then_waits(log):
    mark = await log.changed(0, BOUND)
    assert mark > 0
    assert await log.changed(mark - 1, BOUND) == mark


async def test_a_waiter_wakes_for_our_own_append(log):
    await log.append([note()])
    mark = await log.changed(0, BOUND)
    waiters = [asyncio.create_task(log.changed(mark, BOUND)) for _ in range(3)]
    await asyncio.sleep(0)
    await log.append([note()])
    for waiter in waiters:
        assert await asyncio.wait_for(waiter, BOUND) > mark


async def test_a_waiter_wakes_for_the_append_of_another_program(log, lab):
    mark = await settled_mark(log)
    waiter = asyncio.create_task(log.changed(mark, BOUND))
    await lab.foreign("notes", "noted", {"text": "theirs"})
    assert await waiter > mark


async def test_an_append_before_the_wait_is_not_missed(log, lab):
    mark = await settled_mark(log)
    await lab.foreign("notes", "noted", {"text": "theirs"})
    assert await log.changed(mark, BOUND) > mark


async def test_a_wait_ends_with_its_time(log):
    mark = await settled_mark(log)
    assert await log.changed(mark, 0) == mark
    assert await log.changed(mark, 0.001) == mark
    assert await log.changed(mark + 5, 0.001) == mark


async def test_a_waiter_sleeps_on_until_its_mark_is_passed(log):
    mark = await settled_mark(log)
    waiter = asyncio.create_task(log.changed(mark + 1, BOUND))
    assert await log.changed(mark, 0) == mark
    await log.append([note()])
    assert await log.changed(mark, BOUND) == mark + 1
    assert not waiter.done()
    await log.append([note()])
    assert await waiter == mark + 2


async def settled_mark(log) -> int:
    """A mark after which nothing happened that the store did not notice."""
    mark = await log.changed(0, 0)
    while (later := await log.changed(mark, 0.2)) != mark:
        mark = later
    return mark


# Projections


async def test_a_claim_lives_until_the_moment_it_expires(log, lab):
    expires = lab.clock.now_ms + 1000
    await log.append([claim(expires_at_ms=expires)])

    async def expiry():
        return await log.query(lambda r: r.inbox.claim_expiry("demo", "triage", "k1"))

    lab.clock.now_ms = expires - 1
    assert await expiry() == expires
    lab.clock.now_ms = expires
    assert await expiry() is None
    await log.append([claim(expires_at_ms=expires + 1)])
    assert await expiry() == expires + 1


async def test_a_claim_holds_for_its_package_binding_and_key_only(log, lab):
    later = lab.clock.now_ms + 1
    await log.append(
        [
            claim("k1", later),
            claim("k2 \x00", later, package="other"),
            claim("old", later, package="demo", topic="trigger.inbox"),
        ]
    )
    await lab.foreign(
        "trigger.inbox.claims",
        "dedupe_claim",
        {"binding_id": "triage", "dedupe_key": "theirs", "expires_at_ms": later},
    )

    def look(reader):
        ask = reader.inbox.claim_expiry
        return (
            ask("demo", "triage", "k1"),
            ask("other", "triage", "k1"),
            ask("demo", "other", "k1"),
            ask("other", "triage", "k2 \x00"),
            ask("other", "triage", "k2 "),
            ask("demo", "triage", "old"),
            ask("", "triage", "theirs"),
            ask("demo", "triage", "theirs"),
        )

    assert await log.query(look) == (later, None, None, later, None, later, later, None)


async def test_an_outcome_is_found_in_plain_and_tenant_topics(log):
    plain = Append("trigger.outbox", "dispatch_started", {}, {WORKFLOW_ID: "w1"})
    await log.append(
        [
            plain,
            ended("w1"),
            ended("w2", "dlq", "tenant.acme.trigger.outbox"),
            ended("w3", "failed", "some.trigger.outbox"),
        ]
    )

    def look(reader):
        return [reader.inbox.outcome(w) for w in ("w1", "w2", "w3", "w")]

    one, two, three, none = await log.query(look)
    assert (one.status, one.topic, one.event_id) == ("succeeded", "trigger.outbox", 2)
    assert (two.status, two.topic, two.event_id) == ("dlq", "tenant.acme.trigger.outbox", 1)
    assert three is none is None


async def test_bindings_keep_versions_states_and_definitions(log, lab):
    definition = {"trigger_id": "triage", "events": ["issues.opened"]}
    await log.append(
        [
            transition(1, package="demo", definition=definition),
            transition(1, "active", package="demo"),
            transition(2, fingerprint="f2", package="demo"),
            transition(1, "draining", package="demo"),
            transition(3, fingerprint="f1", package="other"),
        ]
    )
    await lab.foreign("triggers.lifecycle", "state_transition", transition(4).payload)

    def look(reader):
        tables = reader.bindings
        return (
            tables.version("demo", "triage", "f1"),
            tables.version("demo", "triage", "f2"),
            tables.version("demo", "triage", "f3"),
            tables.version("other", "triage", "f1"),
            tables.version("", "triage", "f1"),
            tables.highest("triage"),
            tables.highest("unknown"),
            tables.definition("triage", 1),
            tables.definition("triage", 4),
            [(b.package, b.version, b.state) for b in tables.states()],
            tables.get("triage", 3).package,
            tables.get("triage", 9),
        )

    assert await log.query(look) == (
        1,
        2,
        None,
        3,
        4,
        4,
        0,
        definition,
        None,
        [
            ("", 4, "registering"),
            ("demo", 1, "draining"),
            ("demo", 2, "registering"),
            ("other", 3, "registering"),
        ],
        "other",
        None,
    )


async def test_what_another_program_appended_is_folded_before_the_next_look(log, lab):
    headers = {WORKFLOW_ID: "theirs", OUTCOME: "succeeded"}
    await lab.foreign("trigger.outbox", "dispatch_succeeded", {}, headers)
    assert (await log.query(lambda r: r.inbox.outcome("theirs"))).event_id == 1
    await lab.foreign("trigger.outbox", "dispatch_succeeded", {}, headers | {WORKFLOW_ID: "w2"})

    def work(transaction):
        found = transaction.inbox.outcome("w2")
        transaction.append([ended("w3")])
        return found, transaction.inbox.outcome("w3")

    theirs, ours = await log.transact(work)
    assert (theirs.event_id, ours.event_id) == (2, 3)
    assert is_of("trigger.outbox", await log.read("trigger.outbox")) == [1, 2, 3]
    assert await log.topics() == [TopicHead("trigger.outbox", 3)]
    assert (await verify(log, "trigger.outbox")).intact


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (b"[1, 2]", "no JSON object"),
        (b"{}", "no text in binding_id"),
        (b'{"binding_id": "b", "dedupe_key": "d"}', "no 64-bit integer in expires_at_ms"),
        (b'{"binding_id": "b", "dedupe_key": "d", "expires_at_ms": 1e3}', "64-bit integer"),
        (b'{"binding_id": "b", "dedupe_key": "d", "expires_at_ms": true}', "64-bit integer"),
        (b'{"binding_id": "b", "dedupe_key": "d", "expires_at_ms": 9223372036854775808}', "64-bit"),
        (b'{"binding_id": "b", "dedupe_key": "d", "expires_at_ms": NaN}', "not JSON"),
    ],
)
async def test_what_makes_no_sense_is_skipped_and_listed(log, lab, payload, reason):
    await lab.foreign("trigger.inbox.claims", "dedupe_claim", payload)
    await log.append([claim(expires_at_ms=lab.clock.now_ms + 1)])
    (skipped,) = await log.query(lambda reader: reader.skipped())
    assert (skipped.topic, skipped.event_id, skipped.projection) == (
        "trigger.inbox.claims",
        1,
        "inbox",
    )
    assert reason in skipped.reason
    assert await log.query(lambda r: r.inbox.claim_expiry("demo", "triage", "k1"))
    await log.rebuild()
    assert await log.query(lambda reader: reader.skipped()) == [skipped]


async def test_a_rebuild_gives_the_same_and_drops_the_old(log, lab):
    later = lab.clock.now_ms + 1
    await log.append([claim("k1", later), ended("w1"), transition(package="demo")])

    def look(reader):
        return (
            reader.inbox.claim_expiry("demo", "triage", "k1"),
            reader.inbox.outcome("w1"),
            reader.bindings.states(),
        )

    before = await log.query(look)
    for _ in range(3):
        await log.rebuild()
        assert await log.query(look) == before
    await log.append([ended("w2")])
    assert (await log.query(lambda r: r.inbox.outcome("w2"))).event_id == 2
    tables = await log._in_writer(lambda: log._writer.rows("tables.of", prefix="harn_temporal_g"))
    assert len({table.split("_")[2] for (table,) in tables if "generations" not in table}) == 1


async def test_a_rebuild_misses_nothing_that_is_appended_meanwhile(log, lab, monkeypatch):
    monkeypatch.setattr("harn_temporal.eventlog.projections.BATCH_RECORDS", 20)
    await log.append([ended(f"before-{n}") for n in range(100)])
    rebuilding = asyncio.create_task(log.rebuild())
    names = [f"before-{n}" for n in range(100)]
    number = 0
    while not rebuilding.done():
        names.append(f"ours-{number}")
        await log.append([ended(names[-1])])
        names.append(f"theirs-{number}")
        headers = {WORKFLOW_ID: names[-1], OUTCOME: "failed"}
        await lab.foreign("trigger.outbox", "dispatch_failed", {}, headers)
        number += 1
    await rebuilding
    assert number > 0
    found = await log.query(lambda r: [r.inbox.outcome(name) for name in names])
    assert [outcome.event_id for outcome in found] == list(range(1, len(names) + 1))


# Tamper evidence


async def test_an_untouched_topic_verifies(log, lab):
    await log.append([note(str(n)) for n in range(250)])
    await lab.foreign("notes", "noted", {"text": "theirs"})
    await log.append([note("last")])
    verified = await verify(log, "notes")
    assert (verified.records, verified.sealed, verified.findings) == (252, 251, [])
    assert (await verify(log, "nobody.wrote.here")).records == 0


async def test_an_altered_record_is_named(log, lab):
    await log.append([note("aaaa"), note("bbbb"), note("cccc")])
    await lab.alter("notes", 2, {"text": "BBBB"})
    (finding,) = (await verify(log, "notes")).findings
    assert (finding.event_id, finding.flaw) == (2, "altered")


async def test_an_altered_record_of_others_is_named_by_its_successor(log, lab):
    await log.append([note("aaaa")])
    await lab.foreign("notes", "noted", {"text": "bbbb"})
    await log.append([note("cccc")])
    assert (await verify(log, "notes")).intact
    await lab.alter("notes", 2, {"text": "BBBB"})
    (finding,) = (await verify(log, "notes")).findings
    assert (finding.event_id, finding.flaw) == (3, "unlinked")
    assert "record 2 is sha256:" in finding.detail


async def test_a_record_that_is_gone_is_named(log, lab):
    await log.append([note("a"), note("b"), note("c")])
    await lab.remove("notes", 2)
    (finding,) = (await verify(lab._opened[-1], "notes")).findings
    assert (finding.event_id, finding.flaw) == (3, "missing")
    assert finding.detail == "records 2 to 2 are gone"


# One store, several users


async def test_two_that_share_a_store_see_each_other(lab):
    if not lab.shared:
        pytest.skip("lives in one process and as long as that")
    one, two = await lab.open(), await lab.open()
    assert one.store_id == two.store_id
    for number in range(5):
        await one.append([ended(f"one-{number}")])
        await two.append([ended(f"two-{number}")])
    assert (await one.query(lambda r: r.inbox.outcome("two-4"))).event_id == 10
    assert (await two.query(lambda r: r.inbox.outcome("one-4"))).event_id == 9
    assert (await verify(one, "trigger.outbox")).intact
    mark = await settled_mark(one)
    waiter = asyncio.create_task(one.changed(mark, BOUND))
    await two.append([note()])
    assert await waiter > mark


async def test_a_store_outlives_its_users(lab):
    if not lab.shared:
        pytest.skip("lives in one process and as long as that")
    one = await lab.open()
    await one.append([note("a"), ended("w")], key="k")
    await one.transact(lambda transaction: transaction.ack("notes", "reader", 1))
    await one.close()
    two = await lab.open()
    assert two.store_id == one.store_id
    assert not (await two.append([note("b")], key="k")).fresh
    assert await two.query(lambda r: r.cursor("notes", "reader")) == 1
    await two.append([note("c")])
    assert [r.payload["text"] for r in await two.read("notes")] == ["a", "c"]
    assert (await verify(two, "notes")).intact

"""Keys of any kind, from the event to the page of a dispatch that waits, on a real server."""

from __future__ import annotations

KEY = 'concurrency = { key = "event.provider_payload.raw.key", max = 1 }'
ODD = [
    "\u6f22" * 10_000,
    "\u6f22" * 9_999 + "\u5b57",
    "a/b:c.d\n|#%",
    "a/b:c.d\n|#_",
    None,
    "null",
    7,
    "7",
    {"a": ["b", None]},
]


async def test_odd_keys_wait_for_their_own_gate_only(make_gated):
    gated = await make_gated("held", KEY)
    async with gated.worker():
        holders = []
        for number, key in enumerate(ODD):
            holders.append(await gated.start(number, payload={"key": key}))
        for number in range(len(ODD)):
            await gated.begun(number)  # each holds a gate of its own
        waiters = []
        for number, key in enumerate(ODD, 100):
            waiters.append(await gated.start(number, payload={"key": key}))
        for waiter in waiters:
            await gated.phase(waiter, "gate_wait")
            details = str(await waiter.query("__temporal_workflow_metadata"))
            assert "Waiting for concurrency gated@v1:" in details
        for number in range(len(ODD)):
            gated.let_go(number)
            gated.let_go(number + 100)
        outcomes = await gated.outcomes([*holders, *waiters])
    assert {each.status for each in outcomes} == {"succeeded"}
    gates = await gated.log.query(lambda reader: reader.gates.page())
    assert len(gates) == len(ODD)
    for topic in {each.topic for each in await gated.log.topics("trigger.concurrency.")}:
        assert len(topic.encode()) < 256

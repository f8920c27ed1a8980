"""`fire --wait` with an event of ten MiB and a result of five."""

from __future__ import annotations

import json

MIB = 2**20
HANDLERS = """
def greet(event):
    return {"size": len(event.raw["text"]), "text": "r" * 5 * 2**20}


broken = flaky = parked = refused = slow = stuck = greet
"""


def test_a_large_result_is_printed_in_full(program, temporal_address):
    (program.folder / "lib.py").write_text(HANDLERS)
    payload = {"action": "opened", "text": "e" * (10 * MIB - 100)}
    (program.folder / "large.json").write_text(json.dumps(payload))
    common = ("fire", "new-issue", "--payload", "large.json", "--wait")

    ran = program(*common, "--json", "--address", temporal_address)
    assert (ran.code, ran.err) == (0, "")
    assert ran.json["status"] == "succeeded"
    assert ran.json["result"] == {"size": 10 * MIB - 100, "text": "r" * 5 * MIB}
    assert ran.json["result_address"] == {"topic": "trigger.outbox", "event_id": 2}

    ran = program(*common, "--address", temporal_address)
    assert ran.code == 0
    heading, _, result = ran.out.partition("\n")
    assert heading == "new-issue@v1 succeeded, 1 attempt"
    assert len(json.loads(result)["text"]) == 5 * MIB


def test_an_event_above_the_limit_is_refused(program):
    (program.folder / "huge.json").write_text(json.dumps({"text": "e" * 10 * MIB}))
    ran = program("fire", "new-issue", "--payload", "huge.json")
    assert ran.code == 2
    assert "the limit is 10,485,760 (10 MiB)" in ran.err

"""The other commands of queues, and options of a drain, as an operator runs them."""

from __future__ import annotations

import json
import re


def test_purge_needs_confirmation(place):
    assert place.produce().code == 0
    refused = place.queue("purge", "triage")
    assert refused.code == 2
    assert "--confirm" in refused.err
    assert place.queue("ls", "--json").json["worker_queues"][0]["ready"] == 1
    purged = place.queue("purge", "triage", "--confirm", "--json")
    assert purged.code == 0
    assert list(purged.json) == ["queue", "purged", "summary"]
    assert (purged.json["purged"], purged.json["summary"]["purged"]) == (1, 1)
    assert place.queue("purge", "traige", "--confirm").code == 2
    [job] = place.queue("jobs", "triage", "--json").json["jobs"]
    assert (job["state"], job["promotion_deadline_at"]) == ("purged", None)


def test_a_drain_of_a_queue_that_nobody_knows_says_so(place):
    assert place.queue("enqueue", "triage", "incoming-review-task").code == 0
    ran = place.queue("drain", "traige", "--json")
    assert (ran.code, ran.json["drained"], ran.json["ended"]) == (0, 0, "empty")
    assert "warning: no queue 'traige' was ever seen in this store; it has triage" in ran.err
    right = place.queue("drain", "triage", "--json")
    assert (right.json["drained"], "was ever seen" in right.err) == (1, False)


def test_envelopes_that_wait_for_a_pump_are_called_waiting(place):
    task = place.folder / "task.json"
    task.write_text("{}")
    ingested = place(
        "fire", "incoming-review-task", "--payload", "task.json",
        "--config", "producer/harn.toml", "--state-dir", "./state",
    )  # fmt: skip
    assert ingested.code == 0, ingested.err
    shown = place.queue("ls").out
    assert re.search(r"^waiting +1 envelopes that no dispatch was started for", shown, re.MULTILINE)
    assert "stranded" not in shown


def test_enqueue_pause_and_serve(place):
    lines = place.folder / "jobs.jsonl"
    lines.write_text('{"kind": "one"}\n\n{"kind": "two"}\n{"kind": \n')
    wrong = place.queue("enqueue", "triage", "incoming-review-task", "--from", "jobs.jsonl")
    assert wrong.code == 2
    assert "jobs.jsonl line 4 is not JSON" in wrong.err
    lines.write_text('{"kind": "one"}\n\n{"kind": "two"}\n')
    right = place.queue(
        "enqueue", "triage", "incoming-review-task", "--from", "jobs.jsonl", "--json"
    )
    assert right.code == 0, right.err
    assert right.json == {
        "queue": "triage", "enqueued": 2, "first_job_event_id": 1, "last_job_event_id": 2,
    }  # fmt: skip
    later = place.queue("enqueue", "triage", "incoming-review-task", "--delay", "1h", "--json")
    assert later.json["job_event_id"] == 3

    assert place.queue("pause", "triage", "--json").json["paused"] is True
    paused = place.queue("drain", "triage", "--json")
    assert (paused.code, paused.json["drained"], paused.json["ended"]) == (0, 0, "paused")

    worker = place.start(
        "worker", "--consume", "triage", "--no-pump",
        "--config", "consumer/harn.toml", "--state-dir", "./state",
    )  # fmt: skip
    place.eventually(lambda: b"Ready" in (place.folder / "out-0").read_bytes())
    assert place.handled == []
    assert place.queue("resume", "triage").code == 0
    place.eventually(lambda: place.queue("ls", "--json").json["worker_queues"][0]["acked"] == 2)
    states = [job["state"] for job in place.queue("jobs", "triage", "--json").json["jobs"]]
    assert states == ["acked", "acked", "delayed"]
    worker.terminate()
    assert worker.wait(40) == 0
    said = (place.folder / "err-0").read_text()
    assert "consumer_left_open" not in said
    assert "never retrieved" not in said


def test_up_consumes(place):
    alone = place.folder / "alone"
    alone.mkdir()
    for name in ("harn.toml", "lib.py"):
        (alone / name).write_text((place.folder / "consumer" / name).read_text())
    (place.folder / "jobs.jsonl").write_text('{"kind": "one"}')
    options = ("--from", "jobs.jsonl")
    assert place.queue("enqueue", "triage", "incoming-review-task", *options).code == 0
    up = place.start(
        "up", "--consume", "triage", "--config", "alone/harn.toml", "--state-dir", "./state"
    )
    place.eventually(lambda: place.queue("ls", "--json").json["worker_queues"][0]["acked"] == 1)
    assert len((alone / "handled").read_text().split()) == 1
    up.terminate()
    assert up.wait(40) == 0


def test_a_drain_shows_its_progress_and_the_shares(place):
    for tenant, count in (("acme", 3), ("zoo", 1)):
        lines = '{"kind": "a2a.task.received", "slow": true}\n' * count
        (place.folder / "jobs.jsonl").write_text(lines)
        options = ("--from", "jobs.jsonl", "--tenant", tenant)
        assert place.queue("enqueue", "triage", "incoming-review-task", *options).code == 0
    drain = place.start(
        "queue", "drain", "triage", "--limit", "3", "--max-concurrent", "3", "--inline",
        "--claim-ttl", "90s", "--json", "--config", "consumer/harn.toml", "--state-dir", "./state",
    )  # fmt: skip
    place.eventually(lambda: b"0 jobs handled" in (place.folder / "err-0").read_bytes())
    assert len(place.handled) == 3
    (place.folder / "consumer/go").touch()
    assert drain.wait(60) == 0
    result = json.loads((place.folder / "out-0").read_text())
    assert (result["drained"], result["acked"], result["ended"]) == (3, 3, "limit")
    assert result["claim_ttl_ms"] == 90_000
    assert re.fullmatch(rf".+-pid{drain.pid}-\d{{13}}", result["consumer_id"])  # as Harn makes it
    assert result["shares"] == [{"fairness_key": "acme", "claimed": 3, "share": 1.0}]
    text = place.queue("drain", "triage")
    assert text.code == 0, text.err
    assert re.search(r"^zoo +1 +100\.0%$", text.out, re.MULTILINE)


def test_a_long_file_is_enqueued_with_progress(place):
    lines = "".join(json.dumps({"kind": "a2a.task.received", "n": n}) + "\n" for n in range(10_000))
    (place.folder / "jobs.jsonl").write_text(lines)
    ran = place.queue("enqueue", "triage", "incoming-review-task", "--from", "jobs.jsonl", "--json")
    assert ran.code == 0, ran.err
    assert (ran.json["enqueued"], ran.json["last_job_event_id"]) == (10_000, 10_000)
    assert "10000 of 10000 jobs enqueued" in ran.err

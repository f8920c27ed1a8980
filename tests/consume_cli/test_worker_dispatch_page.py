"""The two manifests of the page on worker dispatch, and its commands, as a reader runs them."""

from __future__ import annotations

import json


def test_the_page_word_for_word(place, page_commands):
    """Its manifests are those of every test here; its commands are run as they stand."""
    inspect, drain, purge, fair_share, shown = page_commands
    assert place.produce().code == 0
    listed = place.shell(inspect)
    assert listed.code == 0, listed.err
    assert any(line.split()[:2] == ["triage", "1"] for line in listed.out.splitlines())

    drained = place.shell(drain)
    assert drained.code == 0, drained.err
    assert "Drained queue triage as worker-a: 1 jobs, 1 acked, 0 deferred" in drained.out
    assert len(place.handled) == 1

    assert place.produce().code == 0
    purged = place.shell(purge)
    assert purged.code == 0, purged.err
    [queue] = place.queue("ls", "--json").json["worker_queues"]
    assert (queue["ready"], queue["acked"], queue["purged"]) == (0, 1, 1)

    for tenant in ("tenant-a", "tenant-b"):
        enqueued = place.queue("enqueue", "triage", "incoming-review-task", "--tenant", tenant)
        assert enqueued.code == 0, enqueued.err
    here = {
        "HARN_ORCHESTRATOR_MANIFEST": "consumer/harn.toml",
        "HARN_ORCHESTRATOR_STATE_DIR": "./state",
    }
    found = place.shell(fair_share, **here)
    assert found.code == 0, found.err
    scheduler, example = found.json["scheduler"], json.loads(shown)["scheduler"]
    example["policy"]["strategy"]["starvation_age_ms"] = 60_000  # as the block before sets it
    assert scheduler["policy"] == example["policy"]
    [ours], [theirs] = scheduler["per_queue"], example["per_queue"]
    assert [name for name in ours if name in theirs] == list(theirs)
    tenants = [key for key in ours["keys"] if key["fairness_key"] != "_no_tenant"]
    assert [list(key) for key in tenants] == [list(key) for key in theirs["keys"]]
    assert [(key["fairness_key"], key["weight"], key["ready_jobs"]) for key in tenants] == [
        ("tenant-a", 3, 1),
        ("tenant-b", 1, 1),
    ]


def test_produce_inspect_and_drain(place):
    enqueued = place.produce()
    assert enqueued.code == 0, enqueued.err
    receipt = {"queue": "triage", "job_event_id": 1, "response_topic": "worker.triage.responses"}
    assert enqueued.json["result"] == receipt
    event_id = enqueued.json["event_id"]

    listed = place.queue("ls", "--json", HARN_SCHEDULER_STRATEGY="drr")
    assert listed.code == 0, listed.err
    assert list(listed.json) == ["dispatcher", "worker_queues", "scheduler"]
    [queue] = listed.json["worker_queues"]
    assert (queue["queue"], queue["ready"], queue["in_flight"]) == ("triage", 1, 0)
    assert listed.json["scheduler"]["policy"] == {
        "strategy": {
            "kind": "deficit-round-robin",
            "quantum": 1,
            "starvation_age_ms": 300000,
        },
        "fairness_key": "tenant",
        "weights": {},
        "default_weight": 1,
        "max_concurrent_per_key": 0,
    }
    [scheduled] = listed.json["scheduler"]["per_queue"]
    assert (scheduled["queue"], scheduled["strategy"]) == ("triage", "drr")
    [key] = scheduled["keys"]
    assert (key["fairness_key"], key["ready_jobs"]) == ("_no_tenant", 1)

    drained = place.queue("drain", "triage", "--consumer-id", "worker-a", "--json")
    assert drained.code == 0, drained.err
    result = drained.json
    assert list(result)[:8] == [
        "queue", "consumer_id", "claim_ttl_ms", "drained", "acked", "deferred", "responses",
        "summary",
    ]  # fmt: skip
    assert (result["queue"], result["consumer_id"]) == ("triage", "worker-a")
    assert result["claim_ttl_ms"] == 300_000
    assert (result["drained"], result["acked"], result["deferred"]) == (1, 1, 0)
    [response] = result["responses"]
    assert response["outcome"]["status"] == "succeeded"
    assert response["outcome"]["result"] == {"reviewed": "a2a.task.received"}
    assert response["outcome"]["event_id"] == event_id
    assert (result["summary"]["ready"], result["summary"]["acked"]) == (0, 1)
    assert place.handled == [event_id]

    again = place.queue("drain", "triage", "--consumer-id", "worker-a")
    assert again.code == 0
    assert "0 jobs" in again.out


def test_a_failed_job_is_left_to_its_ttl_and_exits_one(place):
    (place.folder / "consumer/harn.toml").write_text(
        (place.folder / "consumer/harn.toml").read_text() + "retry = { max = 1 }\n"
    )
    assert place.produce(fails=True).code == 0
    drained = place.queue("drain", "triage", "--consumer-id", "worker-a", "--json")
    assert drained.code == 1, drained.err
    assert (drained.json["acked"], drained.json["deferred"]) == (0, 1)
    [response] = drained.json["responses"]
    assert response["outcome"]["status"] == "dlq"
    assert "cannot review this" in response["outcome"]["error"]
    jobs = place.queue("jobs", "triage", "--json").json["jobs"]
    assert [(job["state"], job["claim"]["consumer_id"]) for job in jobs] == [
        ("in-flight", "worker-a")
    ]
    released = place.queue("release", "triage", "1", "--reason", "try again", "--json")
    assert released.code == 0
    assert released.json["reason"].endswith(": try again")
    assert place.queue("ls", "--json").json["worker_queues"][0]["ready"] == 1

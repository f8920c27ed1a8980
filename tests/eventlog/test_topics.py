from __future__ import annotations

import hashlib
import re

from hypothesis import given
from hypothesis import strategies as st

from harn_temporal.eventlog import topics


def test_what_a_topic_cannot_hold_becomes_an_underscore():
    assert topics.safe_topic("Deploy queue/eu.west-1_a") == "Deploy_queue_eu.west-1_a"
    assert topics.safe_topic("é✓\x00\ud800") == "____"
    assert topics.safe_topic("") == "_"


def test_a_name_over_128_bytes_ends_in_a_hash():
    assert topics.safe_topic("a" * 128) == "a" * 128
    long = topics.safe_topic("a" * 129)
    assert long == "a" * 111 + "-" + hashlib.sha256(b"a" * 129).hexdigest()[:16]
    assert topics.safe_topic("é" * 65).startswith("_" * 65 + "-")
    assert topics.safe_topic("é" * 64) == "_" * 64


@given(st.text(st.characters(exclude_categories=()), max_size=400))
def test_every_name_gives_a_topic_of_bounded_length(name):
    safe = topics.safe_topic(name)
    assert re.fullmatch(r"[A-Za-z0-9._-]{1,128}", safe)
    assert topics.is_topic(safe)


def test_topics_of_tenants():
    assert topics.tenant_topic(None, topics.TRIGGER_OUTBOX) == "trigger.outbox"
    assert topics.tenant_topic("acme", topics.TRIGGER_OUTBOX) == "tenant.acme.trigger.outbox"
    assert topics.is_of("trigger.outbox", topics.TRIGGER_OUTBOX)
    assert topics.is_of("tenant.acme.trigger.outbox", topics.TRIGGER_OUTBOX)
    assert not topics.is_of("other.trigger.outbox", topics.TRIGGER_OUTBOX)
    assert not topics.is_of("tenant.acme.trigger.outboxes", topics.TRIGGER_OUTBOX)

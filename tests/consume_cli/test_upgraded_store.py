"""A drain whose store a newer version of harn-temporal takes over."""

from __future__ import annotations

import sqlite3
from contextlib import closing


def test_the_drain_ends_and_says_why(place):
    assert place.produce(slow=True).code == 0
    process = place.start(
        "queue", "drain", "triage", "--config", "consumer/harn.toml", "--state-dir", "./state"
    )
    place.eventually(lambda: place.handled)

    with closing(sqlite3.connect(place.folder / "state/events.sqlite", timeout=30)) as connection:
        connection.execute("UPDATE harn_temporal_generations SET version = version + 1")
        connection.commit()
    (place.folder / "consumer/go").touch()

    assert process.wait(60) == 3
    said = (place.folder / "err-0").read_text().splitlines()
    assert said[-1].startswith("error: a newer version of harn-temporal has upgraded the EventLog")
    assert not any("Traceback" in line for line in said)

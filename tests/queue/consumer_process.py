"""A consumer in a process of its own: `python consumer_process.py FILE HANDLED TTL_MS TOTAL`.

It writes a line for each job before it acks it, and ends when all jobs are acked.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from harn_temporal.eventlog import StoreSettings, open_event_log
from harn_temporal.queue.models import Settlement
from harn_temporal.queue.operations import WorkerQueue
from harn_temporal.queue.reading import figures
from harn_temporal.scheduler import Policy


async def main(path: Path, handled: Path, ttl_ms: int, total: int) -> None:
    log = await open_event_log(StoreSettings("sqlite", path))
    queue = WorkerQueue(log, "triage", Policy(strategy="drr"))
    me = str(os.getpid())
    output = os.open(handled, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    mark = 0
    while True:
        claims = (await queue.claim(me, 4, ttl_ms=ttl_ms)).claims
        for claim in claims:
            os.write(output, f"{claim.job_event_id} {me}\n".encode())
            settlement = Settlement(
                job_event_id=claim.job_event_id, claim_id=claim.claim_id, ack=True
            )
            (settled,) = await queue.settle(me, [settlement])
            if settled.lost:
                os.write(output, f"lost {me}\n".encode())
        if not claims:
            if (await log.query(figures))[0]["acked"] == total:
                break
            mark = await log.changed(mark, 0.2)
    await log.close()


if __name__ == "__main__":
    file, handled_file, ttl, jobs = sys.argv[1:]
    asyncio.run(main(Path(file), Path(handled_file), int(ttl), int(jobs)))

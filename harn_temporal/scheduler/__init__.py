"""Who gets the next claim: pure functions over what is ready, the policy and the time.

`read_policy` says how; `select` chooses one job among `ReadyJobs`; `Receipt` says
why. The store gives `ReadyJobs` by index (`eventlog.queue_window`), `in_memory` from a list.
"""

from harn_temporal.scheduler.candidates import RANKS, Candidate, promotion_deadline
from harn_temporal.scheduler.policy import Policy, read_policy
from harn_temporal.scheduler.receipt import Receipt, receipt
from harn_temporal.scheduler.selection import ReadyJobs, Selection, select

__all__ = [
    "RANKS",
    "Candidate",
    "Policy",
    "ReadyJobs",
    "Receipt",
    "Selection",
    "promotion_deadline",
    "read_policy",
    "receipt",
    "select",
]

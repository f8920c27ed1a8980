"""Worker queues: jobs in the log, claimed for a time, handled, and acknowledged.

Every operation is a function on a transaction of the EventLog, so that several can be one:

| function | in | what it does |
| --- | --- | --- |
| `enqueue(tx, jobs)` | `enqueuing` | appends jobs; gives a receipt for each |
| `enqueue_job(tx, request)` | `routing` | the same for a dispatch to `worker://…` |
| `claim(tx, order, policy)` | `claiming` | takes up to `limit` ready jobs for `ttl_ms` |
| `renew(tx, queue, …)` | `keeping` | moves the expiry of many claims at once |
| `release(tx, queue, …)` | `keeping` | gives claims back, with a reason |
| `settle(tx, queue, …)` | `settling` | responses, and acks where the claims still hold |
| `purge_some(tx, …)` | `purging` | removes jobs that nobody has claimed |
| `load_job(reader, …)` | `reading` | a job with its event, by its id |
| `list_jobs`, `figures` | `reading` | what `queue jobs` and `queue ls` show |

`WorkerQueue` (`operations`) is the same for callers of the EventLog, a transaction each.
A claim belongs to who made it until somebody else has taken the job: then renewing, releasing
and acknowledging it are refused, and say so (`lost`).
"""

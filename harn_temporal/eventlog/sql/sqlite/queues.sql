-- Worker queues. A queue is known by its name as part of a topic. Its jobs are grouped by what a
-- fairness key can be made of; a lane is what a group has ready at one rank, in order of age.

-- name: queues.create
CREATE TABLE @queues (
  queue_id INTEGER NOT NULL PRIMARY KEY,
  topic TEXT NOT NULL UNIQUE,
  responses INTEGER NOT NULL DEFAULT 0
);

CREATE TABLE @queue_names (
  name TEXT NOT NULL PRIMARY KEY,
  topic TEXT NOT NULL
) WITHOUT ROWID;

CREATE INDEX @queue_names_by_topic ON @queue_names (topic);

CREATE TABLE @queue_groups (
  group_id INTEGER NOT NULL PRIMARY KEY,
  queue_id INTEGER NOT NULL,
  tenant TEXT NOT NULL,
  trigger_id TEXT NOT NULL,
  binding_key TEXT NOT NULL,
  claimed INTEGER NOT NULL DEFAULT 0,
  UNIQUE (queue_id, tenant, trigger_id, binding_key)
);

CREATE TABLE @queue_group_keys (
  queue_id INTEGER NOT NULL,
  dimension TEXT NOT NULL,
  key TEXT NOT NULL,
  group_id INTEGER NOT NULL,
  ready INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (queue_id, dimension, key, group_id)
) WITHOUT ROWID;

CREATE UNIQUE INDEX @queue_group_keys_by_group ON @queue_group_keys (group_id, dimension);

CREATE INDEX @queue_group_keys_ready
ON @queue_group_keys (queue_id, dimension, key) WHERE ready = 1;

CREATE TABLE @queue_lanes (
  group_id INTEGER NOT NULL,
  rank INTEGER NOT NULL,
  queue_id INTEGER NOT NULL,
  ready INTEGER NOT NULL,
  oldest_at_ms INTEGER,
  oldest_id INTEGER,
  PRIMARY KEY (group_id, rank)
) WITHOUT ROWID;

CREATE INDEX @queue_lanes_by_age
ON @queue_lanes (queue_id, rank, oldest_at_ms, oldest_id) WHERE ready > 0;

-- A job may be known by its claims before it is known itself: then `present` is 0.
-- `place`: 0 nowhere, 1 ready in a lane, 2 claimed, 3 delayed. A claim that expires and a delay
-- that ends change nothing here until somebody looks for ready jobs and moves the job to a lane.
CREATE TABLE @queue_jobs (
  queue_id INTEGER NOT NULL,
  job_id INTEGER NOT NULL,
  present INTEGER NOT NULL,
  group_id INTEGER NOT NULL,
  rank INTEGER NOT NULL,
  enqueued_at_ms INTEGER NOT NULL,
  due_at_ms INTEGER NOT NULL,
  event_id TEXT NOT NULL,
  acked INTEGER NOT NULL,
  purged INTEGER NOT NULL,
  place INTEGER NOT NULL,
  claim_id TEXT NOT NULL,
  consumer_id TEXT NOT NULL,
  claimed_at_ms INTEGER NOT NULL,
  expires_at_ms INTEGER NOT NULL,
  deliveries INTEGER NOT NULL,
  PRIMARY KEY (queue_id, job_id)
) WITHOUT ROWID;

CREATE INDEX @queue_jobs_ready
ON @queue_jobs (group_id, rank, due_at_ms, job_id) WHERE place = 1;

CREATE INDEX @queue_jobs_claimed ON @queue_jobs (queue_id, expires_at_ms) WHERE place = 2;

CREATE INDEX @queue_jobs_delayed ON @queue_jobs (queue_id, due_at_ms) WHERE place = 3;

CREATE INDEX @queue_jobs_redelivered
ON @queue_jobs (queue_id, deliveries) WHERE place <> 0 AND deliveries > 1;

-- Claims of a job other than the one in its row: whoever made them may still ack.
CREATE TABLE @queue_other_claims (
  queue_id INTEGER NOT NULL,
  job_id INTEGER NOT NULL,
  claim_id TEXT NOT NULL,
  PRIMARY KEY (queue_id, job_id, claim_id)
) WITHOUT ROWID;

CREATE TABLE @queue_ended (
  queue_id INTEGER NOT NULL PRIMARY KEY,
  acked INTEGER NOT NULL,
  purged INTEGER NOT NULL
);

-- name: queues.id
SELECT queue_id FROM @queues WHERE topic = :topic

-- name: queues.opening
SELECT q.queue_id,
  (SELECT name FROM @queue_names WHERE topic = :topic AND name <> :queue LIMIT 1),
  EXISTS (SELECT 1 FROM harn_temporal_queue_pauses WHERE queue = :topic),
  EXISTS (
    SELECT 1 FROM @queue_jobs
    WHERE queue_id = q.queue_id AND place = 2 AND expires_at_ms <= :now_ms
  ) OR EXISTS (
    SELECT 1 FROM @queue_jobs
    WHERE queue_id = q.queue_id AND place = 3 AND due_at_ms <= :now_ms
  )
FROM (SELECT 1) LEFT JOIN @queues q ON q.topic = :topic

-- name: queues.add
INSERT INTO @queues (topic) VALUES (:topic) RETURNING queue_id

-- name: queues.respond
UPDATE @queues SET responses = responses + 1 WHERE queue_id = :queue_id

-- name: queues.name
INSERT INTO @queue_names (name, topic) VALUES (:queue, :topic) ON CONFLICT DO NOTHING

-- name: queues.names
SELECT name, topic FROM @queue_names ORDER BY name

-- name: queues.names_of
SELECT name FROM @queue_names WHERE topic = :topic ORDER BY name

-- name: queues.group
SELECT group_id FROM @queue_groups
WHERE queue_id = :queue_id AND tenant = :tenant AND trigger_id = :trigger_id
  AND binding_key = :binding_key

-- name: queues.add_group
INSERT INTO @queue_groups (queue_id, tenant, trigger_id, binding_key)
VALUES (:queue_id, :tenant, :trigger_id, :binding_key)
RETURNING group_id

-- name: queues.add_key
INSERT INTO @queue_group_keys (queue_id, dimension, key, group_id)
VALUES (:queue_id, :dimension, :key, :group_id)

-- name: queues.job
SELECT present, group_id, rank, enqueued_at_ms, due_at_ms, event_id, acked, purged, place, claim_id,
  consumer_id, claimed_at_ms, expires_at_ms, deliveries
FROM @queue_jobs
WHERE queue_id = :queue_id AND job_id = :job_id

-- name: queues.held
SELECT q.topic, j.job_id, j.claim_id, j.consumer_id, j.event_id, g.trigger_id
FROM @queues q
CROSS JOIN @queue_jobs j INDEXED BY @queue_jobs_claimed ON j.queue_id = q.queue_id
CROSS JOIN @queue_groups g ON g.group_id = j.group_id
WHERE j.place = 2 AND (:event_id = '' OR j.event_id = :event_id)
ORDER BY q.topic, j.job_id

-- name: queues.add_job
INSERT INTO @queue_jobs (
  queue_id, job_id, present, group_id, rank, enqueued_at_ms, due_at_ms, event_id, acked, purged,
  place, claim_id, consumer_id, claimed_at_ms, expires_at_ms, deliveries
)
VALUES (
  :queue_id, :job_id, :present, :group_id, :rank, :enqueued_at_ms, :due_at_ms, :event_id, :acked,
  :purged, :place, :claim_id, :consumer_id, :claimed_at_ms, :expires_at_ms, :deliveries
)

-- name: queues.appear
UPDATE @queue_jobs SET
  present = 1, group_id = :group_id, rank = :rank, enqueued_at_ms = :enqueued_at_ms,
  due_at_ms = :due_at_ms, event_id = :event_id, acked = :acked, purged = :purged, place = :place,
  claim_id = :claim_id, consumer_id = :consumer_id, claimed_at_ms = :claimed_at_ms,
  expires_at_ms = :expires_at_ms, deliveries = :deliveries
WHERE queue_id = :queue_id AND job_id = :job_id

-- name: queues.change
UPDATE @queue_jobs SET
  acked = :acked, purged = :purged, place = :place, claim_id = :claim_id,
  consumer_id = :consumer_id, claimed_at_ms = :claimed_at_ms, expires_at_ms = :expires_at_ms,
  deliveries = :deliveries
WHERE queue_id = :queue_id AND job_id = :job_id

-- name: queues.see_claim
INSERT INTO @queue_other_claims (queue_id, job_id, claim_id)
VALUES (:queue_id, :job_id, :claim_id)
ON CONFLICT DO NOTHING

-- name: queues.saw_claim
SELECT 1 FROM @queue_other_claims
WHERE queue_id = :queue_id AND job_id = :job_id AND claim_id = :claim_id

-- name: queues.add_lane
INSERT INTO @queue_lanes (group_id, rank, queue_id, ready) VALUES (:group_id, :rank, :queue_id, 0)

-- name: queues.change_lane
UPDATE @queue_lanes SET
  ready = ready + :change,
  (oldest_at_ms, oldest_id) = (
    SELECT due_at_ms, job_id FROM @queue_jobs
    WHERE group_id = :group_id AND rank = :rank AND place = 1
    ORDER BY due_at_ms, job_id
    LIMIT 1
  )
WHERE group_id = :group_id AND rank = :rank
RETURNING ready

-- name: queues.note_ready
-- Of a group in which a lane got its first job, or lost its last one.
UPDATE @queue_group_keys SET ready = 1 - ready
WHERE group_id = :group_id AND ready <> EXISTS (
  SELECT 1 FROM @queue_lanes WHERE group_id = :group_id AND ready > 0
)

-- name: queues.count_claimed
UPDATE @queue_groups SET claimed = claimed + :change WHERE group_id = :group_id

-- name: queues.count_ended
INSERT INTO @queue_ended (queue_id, acked, purged) VALUES (:queue_id, :acked, :purged)
ON CONFLICT (queue_id) DO UPDATE SET acked = acked + :acked, purged = purged + :purged

-- name: queues.any_idle
SELECT 1 FROM harn_temporal_queue_credits WHERE queue = :queue AND idle = 1 LIMIT 1

-- name: queues.rouse
UPDATE harn_temporal_queue_credits SET idle = 0
WHERE queue = :queue AND idle = 1 AND (dimension, key) IN (
  SELECT dimension, key FROM @queue_group_keys WHERE group_id = :group_id
)

-- name: queues.moved_by_time
SELECT job_id FROM (
  SELECT job_id FROM @queue_jobs
  WHERE queue_id = :queue_id AND place = 2 AND expires_at_ms <= :now_ms
  ORDER BY expires_at_ms
  LIMIT :limit
)
UNION ALL
SELECT job_id FROM (
  SELECT job_id FROM @queue_jobs
  WHERE queue_id = :queue_id AND place = 3 AND due_at_ms <= :now_ms
  ORDER BY due_at_ms
  LIMIT :limit
)

-- Of the jobs below the columns are those of ReadyJob.

-- name: queues.by_age
SELECT j.job_id, k.key, l.rank, j.enqueued_at_ms, j.due_at_ms, l.group_id, j.event_id, j.claim_id,
  j.expires_at_ms, j.deliveries
FROM @queue_lanes l
JOIN @queue_jobs j ON j.queue_id = l.queue_id AND j.job_id = l.oldest_id
JOIN @queue_group_keys k ON k.group_id = l.group_id AND k.dimension = :dimension
WHERE l.queue_id = :queue_id AND l.rank = :rank AND l.ready > 0
  AND (l.oldest_at_ms, l.oldest_id) > (:after_at_ms, :after_id)
ORDER BY l.oldest_at_ms, l.oldest_id
LIMIT :limit

-- name: queues.first_by_age
SELECT * FROM (
  SELECT j.job_id, k.key, l.rank, j.enqueued_at_ms, j.due_at_ms, l.group_id, j.event_id,
    j.claim_id, j.expires_at_ms, j.deliveries
  FROM @queue_lanes l
  JOIN @queue_jobs j ON j.queue_id = l.queue_id AND j.job_id = l.oldest_id
  JOIN @queue_group_keys k ON k.group_id = l.group_id AND k.dimension = :dimension
  WHERE l.queue_id = :queue_id AND l.rank = 0 AND l.ready > 0
  ORDER BY l.oldest_at_ms, l.oldest_id
  LIMIT 1
)
UNION ALL
SELECT * FROM (
  SELECT j.job_id, k.key, l.rank, j.enqueued_at_ms, j.due_at_ms, l.group_id, j.event_id,
    j.claim_id, j.expires_at_ms, j.deliveries
  FROM @queue_lanes l
  JOIN @queue_jobs j ON j.queue_id = l.queue_id AND j.job_id = l.oldest_id
  JOIN @queue_group_keys k ON k.group_id = l.group_id AND k.dimension = :dimension
  WHERE l.queue_id = :queue_id AND l.rank = 1 AND l.ready > 0
  ORDER BY l.oldest_at_ms, l.oldest_id
  LIMIT 1
)
UNION ALL
SELECT * FROM (
  SELECT j.job_id, k.key, l.rank, j.enqueued_at_ms, j.due_at_ms, l.group_id, j.event_id,
    j.claim_id, j.expires_at_ms, j.deliveries
  FROM @queue_lanes l
  JOIN @queue_jobs j ON j.queue_id = l.queue_id AND j.job_id = l.oldest_id
  JOIN @queue_group_keys k ON k.group_id = l.group_id AND k.dimension = :dimension
  WHERE l.queue_id = :queue_id AND l.rank = 2 AND l.ready > 0
  ORDER BY l.oldest_at_ms, l.oldest_id
  LIMIT 1
)

-- name: queues.heads
SELECT j.job_id, k.key, l.rank, j.enqueued_at_ms, j.due_at_ms, l.group_id, j.event_id, j.claim_id,
  j.expires_at_ms, j.deliveries
FROM @queue_group_keys k
JOIN @queue_lanes l ON l.group_id = k.group_id AND l.ready > 0
JOIN @queue_jobs j ON j.queue_id = l.queue_id AND j.job_id = l.oldest_id
WHERE k.queue_id = :queue_id AND k.dimension = :dimension
  AND k.key IN (SELECT value FROM json_each(:keys))

-- name: queues.next_in_lane
SELECT job_id, :key, rank, enqueued_at_ms, due_at_ms, group_id, event_id, claim_id, expires_at_ms,
  deliveries
FROM @queue_jobs
WHERE group_id = :group_id AND rank = :rank AND place = 1
  AND (due_at_ms, job_id) > (:after_at_ms, :after_id)
ORDER BY due_at_ms, job_id
LIMIT 1

-- name: queues.in_flight
SELECT coalesce(sum(g.claimed), 0)
FROM @queue_group_keys k JOIN @queue_groups g ON g.group_id = k.group_id
WHERE k.queue_id = :queue_id AND k.dimension = :dimension AND k.key = :key

-- name: queues.credited
SELECT key, credit FROM harn_temporal_queue_credits
WHERE queue = :queue AND dimension = :dimension AND credit > 0 AND idle = 0 AND key > :after
ORDER BY key
LIMIT :limit

-- name: queues.round
SELECT last_key, rounds, starvations, given_from, given_to FROM harn_temporal_queue_rounds
WHERE queue = :queue AND dimension = :dimension

-- name: queues.save_round
INSERT INTO harn_temporal_queue_rounds (
  queue, dimension, last_key, rounds, given_from, given_to, starvations
)
VALUES (:queue, :dimension, :last_key, :rounds, :given_from, :given_to, :starvations)
ON CONFLICT (queue, dimension) DO UPDATE SET
  last_key = excluded.last_key, rounds = excluded.rounds, given_from = excluded.given_from,
  given_to = excluded.given_to, starvations = excluded.starvations

-- name: queues.ready_keys
SELECT DISTINCT key FROM @queue_group_keys
WHERE queue_id = :queue_id AND dimension = :dimension AND ready = 1 AND key > :after
ORDER BY key
LIMIT :limit

-- name: queues.save_credit
INSERT INTO harn_temporal_queue_credits (
  queue, dimension, key, credit, idle, selected_total, deferred_total
)
VALUES (:queue, :dimension, :key, :credit, 0, :selected, 0)
ON CONFLICT (queue, dimension, key) DO UPDATE SET
  credit = excluded.credit,
  idle = 0,
  selected_total = selected_total + excluded.selected_total

-- name: queues.count_selected
INSERT INTO harn_temporal_queue_credits (
  queue, dimension, key, credit, idle, selected_total, deferred_total
)
VALUES (:queue, :dimension, :key, 0, 0, :selected, 0)
ON CONFLICT (queue, dimension, key) DO UPDATE SET
  selected_total = selected_total + excluded.selected_total

-- name: queues.save_idle
UPDATE harn_temporal_queue_credits SET idle = 1
WHERE queue = :queue AND dimension = :dimension AND key = :key

-- name: queues.defer
INSERT INTO harn_temporal_queue_credits (
  queue, dimension, key, credit, idle, selected_total, deferred_total
)
SELECT DISTINCT :queue, :dimension, k.key, 0, 0, 0, 1
FROM @queue_lanes l JOIN @queue_group_keys k
  ON k.group_id = l.group_id AND k.dimension = :dimension
WHERE l.queue_id = :queue_id AND l.ready > 0
  AND k.key NOT IN (SELECT value FROM json_each(:but))
ON CONFLICT (queue, dimension, key) DO UPDATE SET deferred_total = deferred_total + 1
RETURNING key

-- name: queues.ahead
SELECT
  EXISTS (SELECT 1 FROM @queue_lanes WHERE queue_id = :queue_id AND rank = 0 AND ready > 0)
  OR EXISTS (SELECT 1 FROM @queue_lanes WHERE queue_id = :queue_id AND rank = 1 AND ready > 0)
  OR EXISTS (SELECT 1 FROM @queue_lanes WHERE queue_id = :queue_id AND rank = 2 AND ready > 0),
  (SELECT min(expires_at_ms) FROM @queue_jobs WHERE queue_id = :queue_id AND place = 2),
  (SELECT min(due_at_ms) FROM @queue_jobs WHERE queue_id = :queue_id AND place = 3)

-- name: queues.pause
INSERT INTO harn_temporal_queue_pauses (queue, paused_at_ms, paused_by)
VALUES (:queue, :now_ms, :paused_by)
ON CONFLICT DO NOTHING

-- name: queues.resume
DELETE FROM harn_temporal_queue_pauses WHERE queue = :queue

-- name: queues.paused
SELECT paused_at_ms, paused_by FROM harn_temporal_queue_pauses WHERE queue = :queue

-- name: queues.figures
SELECT q.topic, q.queue_id, q.responses, coalesce(e.acked, 0), coalesce(e.purged, 0),
  (SELECT coalesce(sum(ready), 0) FROM @queue_lanes WHERE queue_id = q.queue_id),
  (SELECT coalesce(sum(claimed), 0) FROM @queue_groups WHERE queue_id = q.queue_id),
  (SELECT count(*) FROM @queue_jobs WHERE queue_id = q.queue_id AND place = 3),
  (SELECT max(deliveries) FROM @queue_jobs
   WHERE queue_id = q.queue_id AND place <> 0 AND deliveries > 1),
  (SELECT min(oldest_at_ms) FROM @queue_lanes WHERE queue_id = q.queue_id AND ready > 0)
FROM @queues q LEFT JOIN @queue_ended e ON e.queue_id = q.queue_id
WHERE q.topic = :topic

-- name: queues.keys
SELECT k.key, sum(g.claimed), sum(coalesce(l.ready, 0)), min(l.oldest_at_ms)
FROM @queue_group_keys k
JOIN @queue_groups g ON g.group_id = k.group_id
LEFT JOIN (
  SELECT group_id, sum(ready) AS ready, min(oldest_at_ms) AS oldest_at_ms FROM @queue_lanes
  WHERE queue_id = :queue_id AND ready > 0
  GROUP BY group_id
) l ON l.group_id = k.group_id
WHERE k.queue_id = :queue_id AND k.dimension = :dimension
GROUP BY k.key
ORDER BY k.key

-- name: queues.busy_keys
WITH busy (group_id) AS (
  SELECT group_id FROM @queue_lanes WHERE queue_id = :queue_id AND ready > 0
  UNION
  SELECT group_id FROM @queue_jobs WHERE queue_id = :queue_id AND place = 2
)
SELECT k.key, sum(g.claimed), sum(coalesce(l.ready, 0)), min(l.oldest_at_ms),
  coalesce(c.credit, 0), coalesce(c.selected_total, 0), coalesce(c.deferred_total, 0),
  count(*) OVER ()
FROM busy b
JOIN @queue_group_keys k ON k.group_id = b.group_id AND k.dimension = :dimension
JOIN @queue_groups g ON g.group_id = b.group_id
LEFT JOIN (
  SELECT group_id, sum(ready) AS ready, min(oldest_at_ms) AS oldest_at_ms FROM @queue_lanes
  WHERE queue_id = :queue_id AND ready > 0
  GROUP BY group_id
) l ON l.group_id = b.group_id
LEFT JOIN harn_temporal_queue_credits c
  ON c.queue = :queue AND c.dimension = :dimension AND c.key = k.key
GROUP BY k.key
ORDER BY min(l.oldest_at_ms) IS NULL, min(l.oldest_at_ms), k.key
LIMIT :limit

-- name: queues.credits
SELECT key, credit, selected_total, deferred_total FROM harn_temporal_queue_credits
WHERE queue = :queue AND dimension = :dimension
ORDER BY key

-- name: queues.waiting_since
SELECT count(*) FROM @queue_lanes l JOIN @queue_jobs j
  ON j.group_id = l.group_id AND j.rank = l.rank AND j.place = 1 AND j.due_at_ms <= :until_ms
WHERE l.queue_id = :queue_id AND l.ready > 0 AND l.oldest_at_ms <= :until_ms

-- name: queues.ready_by_time
-- Of jobs that lie among the claimed or delayed though time has made them ready.
SELECT k.key, min(j.due_at_ms), count(*), count(CASE j.place WHEN 2 THEN 1 END)
FROM @queue_jobs j JOIN @queue_group_keys k
  ON k.group_id = j.group_id AND k.dimension = :dimension
WHERE (
    j.queue_id = :queue_id AND j.place = 2 AND j.expires_at_ms <= :now_ms
    AND (j.due_at_ms <= :now_ms OR j.due_at_ms = j.enqueued_at_ms)
  )
  OR (j.queue_id = :queue_id AND j.place = 3 AND j.due_at_ms <= :now_ms)
GROUP BY k.key

-- name: queues.list
SELECT j.job_id, g.trigger_id, g.binding_key, g.tenant, j.rank, j.enqueued_at_ms, j.due_at_ms,
  j.event_id, j.acked, j.purged, j.claim_id, j.consumer_id, j.claimed_at_ms,
  j.expires_at_ms, j.deliveries
FROM @queue_jobs j JOIN @queue_groups g ON g.group_id = j.group_id
WHERE j.queue_id = :queue_id AND j.present = 1 AND j.job_id > :after
ORDER BY j.job_id
LIMIT :limit

-- name: queues.unclaimed
SELECT job_id FROM @queue_jobs j
WHERE queue_id = :queue_id AND present = 1 AND job_id > :after
  AND (place IN (1, 3) OR (place = 2 AND expires_at_ms <= :now_ms))
ORDER BY job_id
LIMIT :limit

-- What the scheduler of worker queues keeps. No record holds it: a rebuild of projections leaves
-- it alone, and losing it costs one round. `queue` is the queue's name as part of a topic,
-- `dimension` what fairness keys are made of.

-- A round is given out in pieces, to keys in order: after `given_from`, up to its end and from the
-- beginning to `given_from` again. It has come to `given_to`, which is NULL when all have had it.
CREATE TABLE harn_temporal_queue_rounds (
  queue TEXT NOT NULL,
  dimension TEXT NOT NULL,
  last_key TEXT,
  rounds INTEGER NOT NULL,
  given_from TEXT NOT NULL,
  given_to TEXT,
  starvations INTEGER NOT NULL,
  PRIMARY KEY (queue, dimension)
) WITHOUT ROWID;

-- `idle`: the key was found without ready jobs, and is passed over until it has some.
CREATE TABLE harn_temporal_queue_credits (
  queue TEXT NOT NULL,
  dimension TEXT NOT NULL,
  key TEXT NOT NULL,
  credit INTEGER NOT NULL,
  idle INTEGER NOT NULL,
  selected_total INTEGER NOT NULL,
  deferred_total INTEGER NOT NULL,
  PRIMARY KEY (queue, dimension, key)
) WITHOUT ROWID;

CREATE INDEX harn_temporal_queue_credited
ON harn_temporal_queue_credits (queue, dimension, key) WHERE credit > 0 AND idle = 0;

CREATE INDEX harn_temporal_queue_idle
ON harn_temporal_queue_credits (queue, dimension, key) WHERE idle = 1;

CREATE TABLE harn_temporal_queue_pauses (
  queue TEXT NOT NULL PRIMARY KEY,
  paused_at_ms INTEGER NOT NULL,
  paused_by TEXT NOT NULL
);

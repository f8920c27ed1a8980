-- The first four tables are Harn's: a file that Harn made has them already.

CREATE TABLE IF NOT EXISTS topic_heads (
  topic TEXT NOT NULL PRIMARY KEY,
  last_id INTEGER NOT NULL
);

CREATE TABLE IF NOT EXISTS events (
  topic TEXT NOT NULL,
  event_id INTEGER NOT NULL,
  kind TEXT NOT NULL,
  payload BLOB NOT NULL,
  headers TEXT NOT NULL,
  occurred_at_ms INTEGER NOT NULL,
  PRIMARY KEY (topic, event_id)
);

CREATE TABLE IF NOT EXISTS consumers (
  topic TEXT NOT NULL,
  consumer_id TEXT NOT NULL,
  cursor INTEGER NOT NULL,
  updated_at_ms INTEGER NOT NULL,
  PRIMARY KEY (topic, consumer_id)
);

CREATE TABLE IF NOT EXISTS event_idempotency_keys (
  topic TEXT NOT NULL,
  key TEXT NOT NULL,
  value TEXT NOT NULL,
  event_id INTEGER NOT NULL,
  PRIMARY KEY (topic, key, value)
);

CREATE INDEX harn_temporal_keys_by_value ON event_idempotency_keys (key, value);

CREATE TABLE harn_temporal_store (
  name TEXT NOT NULL PRIMARY KEY,
  value TEXT NOT NULL
);

-- The rows of `events` that our own code did not fold yet.
CREATE TABLE harn_temporal_unfolded (
  seq INTEGER NOT NULL PRIMARY KEY,
  topic TEXT NOT NULL,
  event_id INTEGER NOT NULL
);

CREATE TRIGGER harn_temporal_note AFTER INSERT ON events
BEGIN
  INSERT INTO harn_temporal_unfolded (topic, event_id) VALUES (new.topic, new.event_id);
END;

-- Sets of projection tables. One is live; others are being built or wait to be dropped.
CREATE TABLE harn_temporal_generations (
  generation INTEGER NOT NULL PRIMARY KEY,
  version INTEGER NOT NULL,
  live INTEGER NOT NULL
);

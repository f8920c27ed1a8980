-- name: outbox.create
-- `workflow_id` is empty for Harn's dispatches, and so are `tenant_id` and `error` where there is
-- none. `ended_at_ms` is when the last attempt ended.
CREATE TABLE @outbox_dispatches (
  event_id TEXT NOT NULL,
  binding_key TEXT NOT NULL,
  workflow_id TEXT NOT NULL,
  topic TEXT NOT NULL,
  tenant_id TEXT NOT NULL,
  replay INTEGER NOT NULL,
  status TEXT NOT NULL,
  attempts INTEGER NOT NULL,
  error TEXT NOT NULL,
  started_at_ms INTEGER NOT NULL,
  ended_at_ms INTEGER NOT NULL,
  PRIMARY KEY (event_id, binding_key, workflow_id, topic)
);

CREATE INDEX @outbox_latest
ON @outbox_dispatches (binding_key, max(started_at_ms, ended_at_ms));

CREATE TABLE @outbox_figures (
  binding_key TEXT NOT NULL,
  status TEXT NOT NULL,
  dispatches INTEGER NOT NULL,
  attempts INTEGER NOT NULL,
  PRIMARY KEY (binding_key, status)
) WITHOUT ROWID;

CREATE TABLE @outbox_last (
  binding_key TEXT NOT NULL PRIMARY KEY,
  at_ms INTEGER NOT NULL
) WITHOUT ROWID;

-- name: outbox.one
SELECT event_id, binding_key, workflow_id, topic, tenant_id, replay, status, attempts, error,
  started_at_ms, ended_at_ms
FROM @outbox_dispatches
WHERE event_id = :event_id AND binding_key = :binding_key AND workflow_id = :workflow_id
  AND topic = :topic

-- name: outbox.put
INSERT INTO @outbox_dispatches (
  event_id, binding_key, workflow_id, topic, tenant_id, replay, status, attempts, error,
  started_at_ms, ended_at_ms
)
VALUES (
  :event_id, :binding_key, :workflow_id, :topic, :tenant_id, :replay, :status, :attempts, :error,
  :started_at_ms, :ended_at_ms
)
ON CONFLICT (event_id, binding_key, workflow_id, topic) DO UPDATE SET
  status = excluded.status,
  attempts = excluded.attempts,
  error = excluded.error,
  started_at_ms = excluded.started_at_ms,
  ended_at_ms = excluded.ended_at_ms

-- name: outbox.count
INSERT INTO @outbox_figures (binding_key, status, dispatches, attempts)
VALUES (:binding_key, :status, :dispatches, :attempts)
ON CONFLICT (binding_key, status) DO UPDATE SET
  dispatches = dispatches + excluded.dispatches,
  attempts = attempts + excluded.attempts

-- name: outbox.seen
INSERT INTO @outbox_last (binding_key, at_ms) VALUES (:binding_key, :at_ms)
ON CONFLICT (binding_key) DO UPDATE SET at_ms = max(at_ms, excluded.at_ms)

-- name: outbox.figures
SELECT binding_key, status, dispatches, attempts, at_ms
FROM @outbox_figures JOIN @outbox_last USING (binding_key)
WHERE dispatches > 0
ORDER BY binding_key, status

-- name: outbox.latest
SELECT event_id, binding_key, workflow_id, topic, tenant_id, replay, status, attempts, error,
  started_at_ms, ended_at_ms
FROM @outbox_dispatches
WHERE binding_key = :binding_key
ORDER BY max(started_at_ms, ended_at_ms) DESC
LIMIT :limit

-- name: outbox.of_event
SELECT event_id, binding_key, workflow_id, topic, tenant_id, replay, status, attempts, error,
  started_at_ms, ended_at_ms
FROM @outbox_dispatches
WHERE event_id = :event_id
ORDER BY binding_key, workflow_id, topic

-- name: outbox.of_page
-- The dispatches of what `event_index.page` gives.
SELECT event_id, binding_key, workflow_id, topic, tenant_id, replay, status, attempts, error,
  started_at_ms, ended_at_ms
FROM (
  SELECT event_id, binding_key FROM @event_places
  WHERE (event_id, binding_key) > (:event_id, :binding_key)
  ORDER BY event_id, binding_key
  LIMIT :limit
)
JOIN @outbox_dispatches USING (event_id, binding_key)

-- name: dead_letters.create
-- `version` is -1 where the binding has none, `tenant_id` empty where the event has none.
CREATE TABLE @dead_letters (
  id TEXT NOT NULL PRIMARY KEY,
  event_id TEXT NOT NULL,
  trigger_id TEXT NOT NULL,
  version INTEGER NOT NULL,
  provider TEXT NOT NULL,
  kind TEXT NOT NULL,
  tenant_id TEXT NOT NULL,
  state TEXT NOT NULL,
  error TEXT NOT NULL,
  error_class TEXT NOT NULL,
  attempts INTEGER NOT NULL,
  moved_at_ms INTEGER NOT NULL,
  first_record_id INTEGER NOT NULL,
  record_id INTEGER NOT NULL
);

CREATE INDEX @dead_letters_by_event ON @dead_letters (event_id);

CREATE INDEX @dead_letters_by_state ON @dead_letters (state, first_record_id);

-- name: dead_letters.note
INSERT INTO @dead_letters (
  id, event_id, trigger_id, version, provider, kind, tenant_id, state, error, error_class,
  attempts, moved_at_ms, first_record_id, record_id
)
VALUES (
  :id, :event_id, :trigger_id, :version, :provider, :kind, :tenant_id, :state, :error,
  :error_class, :attempts, :at_ms, :record_id, :record_id
)
ON CONFLICT (id) DO UPDATE SET
  event_id = excluded.event_id,
  trigger_id = excluded.trigger_id,
  version = excluded.version,
  provider = excluded.provider,
  kind = excluded.kind,
  tenant_id = excluded.tenant_id,
  state = excluded.state,
  error = excluded.error,
  error_class = excluded.error_class,
  attempts = excluded.attempts,
  record_id = excluded.record_id
WHERE excluded.record_id > record_id

-- name: dead_letters.all
SELECT id, event_id, trigger_id, version, provider, kind, tenant_id, state, error, error_class,
  attempts, moved_at_ms, record_id
FROM @dead_letters
ORDER BY first_record_id

-- name: dead_letters.in_state
SELECT id, event_id, trigger_id, version, provider, kind, tenant_id, state, error, error_class,
  attempts, moved_at_ms, record_id
FROM @dead_letters
WHERE state = :state
ORDER BY first_record_id

-- name: dead_letters.of_event
SELECT id, event_id, trigger_id, version, provider, kind, tenant_id, state, error, error_class,
  attempts, moved_at_ms, record_id
FROM @dead_letters
WHERE event_id = :event_id
ORDER BY first_record_id

-- name: dead_letters.one
SELECT id, event_id, trigger_id, version, provider, kind, tenant_id, state, error, error_class,
  attempts, moved_at_ms, record_id
FROM @dead_letters
WHERE id = :id

-- name: dead_letters.below
SELECT id FROM @dead_letters WHERE id <= :id ORDER BY id DESC LIMIT :limit

-- name: dead_letters.above
SELECT id FROM @dead_letters WHERE id > :id ORDER BY id LIMIT :limit

-- name: dead_letters.holding
SELECT id FROM @dead_letters WHERE instr(id, :part) > 0 LIMIT :limit

-- name: dead_letters.depth
SELECT count(*) FROM @dead_letters WHERE state = 'pending'

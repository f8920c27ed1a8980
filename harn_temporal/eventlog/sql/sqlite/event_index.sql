-- name: event_index.create
-- `version` is 0 where the binding has none, `package` empty where the record names none. `rank`
-- says which of several records with the event is taken: the lowest, by topic and id.
CREATE TABLE @event_places (
  event_id TEXT NOT NULL,
  binding_key TEXT NOT NULL,
  trigger_id TEXT NOT NULL,
  version INTEGER NOT NULL,
  package TEXT NOT NULL,
  rank INTEGER NOT NULL,
  topic TEXT NOT NULL,
  record_id INTEGER NOT NULL,
  PRIMARY KEY (event_id, binding_key)
) WITHOUT ROWID;

CREATE TABLE @event_updates (
  event_id TEXT NOT NULL,
  record_id INTEGER NOT NULL,
  PRIMARY KEY (event_id, record_id)
) WITHOUT ROWID;

-- name: event_index.note
INSERT INTO @event_places (
  event_id, binding_key, trigger_id, version, package, rank, topic, record_id
)
VALUES (:event_id, :binding_key, :trigger_id, :version, :package, :rank, :topic, :record_id)
ON CONFLICT (event_id, binding_key) DO UPDATE SET
  trigger_id = excluded.trigger_id,
  version = excluded.version,
  package = excluded.package,
  rank = excluded.rank,
  topic = excluded.topic,
  record_id = excluded.record_id
WHERE (excluded.rank, excluded.topic, excluded.record_id) < (rank, topic, record_id)

-- name: event_index.note_update
INSERT INTO @event_updates (event_id, record_id) VALUES (:event_id, :record_id)
ON CONFLICT DO NOTHING

-- name: event_index.of_event
SELECT event_id, binding_key, trigger_id, version, package, topic, record_id
FROM @event_places
WHERE event_id = :event_id
ORDER BY binding_key

-- name: event_index.page
SELECT event_id, binding_key, trigger_id, version, package, topic, record_id
FROM @event_places
WHERE (event_id, binding_key) > (:event_id, :binding_key)
ORDER BY event_id, binding_key
LIMIT :limit

-- name: event_index.updates
SELECT record_id FROM @event_updates WHERE event_id = :event_id ORDER BY record_id

-- name: event_index.below
SELECT DISTINCT event_id FROM @event_places
WHERE event_id <= :id
ORDER BY event_id DESC
LIMIT :limit

-- name: event_index.above
SELECT DISTINCT event_id FROM @event_places
WHERE event_id > :id
ORDER BY event_id
LIMIT :limit

-- name: event_index.holding
SELECT DISTINCT event_id FROM @event_places WHERE instr(event_id, :part) > 0 LIMIT :limit

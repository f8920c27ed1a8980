-- A row whose id is no integer, which only a faulty program writes, is no record.

-- name: events.insert
INSERT INTO events (topic, event_id, kind, payload, headers, occurred_at_ms)
VALUES (:topic, :event_id, :kind, :payload, :headers, :occurred_at_ms)

-- name: events.read
SELECT topic, event_id, kind, payload, headers, occurred_at_ms
FROM events
WHERE topic = :topic AND event_id > :after AND typeof(event_id) = 'integer'
ORDER BY event_id
LIMIT :limit

-- name: events.one
SELECT topic, event_id, kind, payload, headers, occurred_at_ms
FROM events
WHERE topic = :topic AND event_id = :event_id

-- name: events.nearest
SELECT topic, event_id, kind, payload, headers, occurred_at_ms
FROM events
WHERE topic = :topic AND typeof(event_id) = 'integer'
ORDER BY event_id DESC
LIMIT 1

-- name: events.position
SELECT coalesce(max(rowid), 0) FROM events

-- name: heads.one
SELECT max(
  coalesce((SELECT last_id FROM topic_heads WHERE topic = :topic), 0),
  coalesce(
    (
      SELECT event_id FROM events
      WHERE topic = :topic AND typeof(event_id) = 'integer'
      ORDER BY event_id DESC
      LIMIT 1
    ),
    0
  )
)

-- name: heads.raise
INSERT INTO topic_heads (topic, last_id) VALUES (:topic, :last_id)
ON CONFLICT (topic) DO UPDATE SET last_id = max(last_id, excluded.last_id)

-- name: heads.all
SELECT topic, last_id FROM topic_heads
WHERE substr(topic, 1, length(:prefix)) = :prefix
ORDER BY topic

-- name: keys.insert
INSERT INTO event_idempotency_keys (topic, key, value, event_id)
VALUES (:topic, :key, :value, :event_id)
ON CONFLICT DO NOTHING

-- name: keys.find
SELECT topic, event_id FROM event_idempotency_keys
WHERE key = :key AND value = :value
ORDER BY topic, event_id
LIMIT 1

-- name: consumers.one
SELECT cursor, updated_at_ms FROM consumers
WHERE topic = :topic AND consumer_id = :consumer_id

-- name: consumers.ack
INSERT INTO consumers (topic, consumer_id, cursor, updated_at_ms)
VALUES (:topic, :consumer_id, :cursor, :now_ms)
ON CONFLICT (topic, consumer_id) DO UPDATE SET
  cursor = max(cursor, excluded.cursor),
  updated_at_ms = max(updated_at_ms, excluded.updated_at_ms)

-- name: store.value
SELECT value FROM harn_temporal_store WHERE name = :name

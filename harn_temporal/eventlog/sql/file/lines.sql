-- name: files.all
SELECT topic, size, seen FROM line_files

-- name: files.size
SELECT coalesce((SELECT size FROM line_files WHERE topic = :topic), 0)

-- name: files.grow
INSERT INTO line_files (topic, size, seen) VALUES (:topic, :size, :seen)
ON CONFLICT (topic) DO UPDATE SET size = excluded.size, seen = excluded.seen

-- name: files.forget
DELETE FROM line_files;
DELETE FROM line_offsets;
DELETE FROM lines_to_write;
DELETE FROM cursors_to_write;
DELETE FROM consumers;
DELETE FROM topic_heads;
DELETE FROM event_idempotency_keys;
DELETE FROM harn_temporal_unfolded;
UPDATE harn_temporal_generations SET live = 0

-- name: offsets.insert
INSERT INTO line_offsets (topic, event_id, offset) VALUES (:topic, :event_id, :offset)
ON CONFLICT DO NOTHING

-- name: offsets.after
SELECT event_id, offset FROM line_offsets
WHERE topic = :topic AND event_id > :after
ORDER BY event_id
LIMIT :limit

-- name: offsets.last
SELECT coalesce(max(event_id), 0) FROM line_offsets WHERE topic = :topic

-- name: notes.add
INSERT INTO harn_temporal_unfolded (topic, event_id) VALUES (:topic, :event_id)

-- name: unwritten.insert
INSERT INTO lines_to_write (topic, event_id, offset, line)
VALUES (:topic, :event_id, :offset, :line)

-- name: unwritten.any
SELECT 1 FROM lines_to_write UNION ALL SELECT 1 FROM cursors_to_write LIMIT 1

-- name: unwritten.all
SELECT topic, offset, line FROM lines_to_write ORDER BY seq

-- name: unwritten.of
SELECT event_id, line FROM lines_to_write WHERE topic = :topic

-- name: unwritten.clear
DELETE FROM lines_to_write

-- name: cursors.mark
INSERT INTO cursors_to_write (topic, consumer_id) VALUES (:topic, :consumer_id)
ON CONFLICT DO NOTHING

-- name: cursors.unwritten
SELECT topic, consumer_id, cursor, updated_at_ms
FROM cursors_to_write JOIN consumers USING (topic, consumer_id)

-- name: cursors.clear
DELETE FROM cursors_to_write

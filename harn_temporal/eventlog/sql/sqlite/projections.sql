-- name: notes.any
SELECT 1 FROM harn_temporal_unfolded LIMIT 1

-- name: notes.oldest
SELECT seq, topic, event_id FROM harn_temporal_unfolded ORDER BY seq LIMIT :limit

-- name: notes.clear
DELETE FROM harn_temporal_unfolded WHERE seq <= :seq

-- name: notes.clear_all
DELETE FROM harn_temporal_unfolded

-- name: generations.live
SELECT generation, version FROM harn_temporal_generations WHERE live = 1

-- name: generations.add
INSERT INTO harn_temporal_generations (generation, version, live)
SELECT coalesce(max(generation), 0) + 1, :version, 0 FROM harn_temporal_generations

-- name: generations.newest
SELECT max(generation) FROM harn_temporal_generations

-- name: generations.retire
UPDATE harn_temporal_generations SET live = 0 WHERE live = 1

-- name: generations.enliven
UPDATE harn_temporal_generations SET live = 1 WHERE generation = :generation

-- name: generations.idle
SELECT generation FROM harn_temporal_generations WHERE live = 0 ORDER BY generation

-- name: generations.forget
DELETE FROM harn_temporal_generations WHERE generation = :generation AND live = 0

-- name: skipped.create
CREATE TABLE @skipped (
  topic TEXT NOT NULL,
  event_id INTEGER NOT NULL,
  projection TEXT NOT NULL,
  reason TEXT NOT NULL,
  PRIMARY KEY (topic, event_id, projection)
)

-- name: skipped.note
INSERT INTO @skipped (topic, event_id, projection, reason)
VALUES (:topic, :event_id, :projection, :reason)
ON CONFLICT DO NOTHING

-- name: skipped.list
SELECT topic, event_id, projection, reason FROM @skipped ORDER BY topic, event_id, projection

-- name: tables.of
SELECT name FROM sqlite_master
WHERE type = 'table' AND substr(name, 1, length(:prefix)) = :prefix
ORDER BY name

-- name: tables.empty
DELETE FROM @table WHERE (@key) IN (SELECT @key FROM @table LIMIT :limit)

-- name: tables.key
SELECT name FROM pragma_table_info(:of) WHERE pk > 0 ORDER BY pk

-- name: tables.drop
DROP TABLE @table

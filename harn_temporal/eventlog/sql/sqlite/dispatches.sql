-- name: dispatches.create
CREATE TABLE @dispatches (
  workflow_id TEXT NOT NULL PRIMARY KEY,
  package TEXT NOT NULL,
  envelope_topic TEXT NOT NULL,
  envelope_id INTEGER NOT NULL,
  enveloped_at_ms INTEGER NOT NULL,
  admitted_at_ms INTEGER NOT NULL,
  admitted_id INTEGER NOT NULL,
  parked INTEGER NOT NULL,
  lost_id INTEGER NOT NULL,
  begun_topic TEXT NOT NULL,
  begun_id INTEGER NOT NULL,
  started_attempt INTEGER NOT NULL,
  ended_attempt INTEGER NOT NULL,
  outcome TEXT NOT NULL,
  completed INTEGER NOT NULL
);

CREATE INDEX @dispatches_outstanding ON @dispatches (package)
WHERE admitted_at_ms > 0 AND ended_attempt = 0 AND outcome = '' AND parked = 0
  AND lost_id < max(1, admitted_id);

CREATE INDEX @dispatches_waiting ON @dispatches (package, enveloped_at_ms)
WHERE enveloped_at_ms > 0 AND admitted_at_ms = 0 AND started_attempt = 0 AND ended_attempt = 0
  AND outcome = '';

CREATE INDEX @dispatches_under_way ON @dispatches (workflow_id)
WHERE outcome = '' AND (admitted_at_ms > 0 OR started_attempt > 0);

CREATE INDEX @dispatches_lost ON @dispatches (package, enveloped_at_ms)
WHERE outcome = '' AND lost_id >= max(1, envelope_id);

CREATE INDEX @dispatches_unreported ON @dispatches (package)
WHERE admitted_at_ms > 0 AND outcome <> '' AND completed = 0;

-- name: dispatches.note
INSERT INTO @dispatches (
  workflow_id, package, envelope_topic, envelope_id, enveloped_at_ms, admitted_at_ms, admitted_id,
  parked, lost_id, begun_topic, begun_id, started_attempt, ended_attempt, outcome, completed
)
VALUES (
  :workflow_id, :package, :envelope_topic, :envelope_id, :enveloped_at_ms, :admitted_at_ms,
  :admitted_id, :parked, :lost_id, :begun_topic, :begun_id, :started_attempt, :ended_attempt,
  :outcome, :completed
)
ON CONFLICT (workflow_id) DO UPDATE SET
  package = max(package, excluded.package),
  envelope_topic = CASE
    WHEN (excluded.envelope_id, excluded.envelope_topic) > (envelope_id, envelope_topic)
    THEN excluded.envelope_topic ELSE envelope_topic END,
  envelope_id = max(envelope_id, excluded.envelope_id),
  enveloped_at_ms = max(enveloped_at_ms, excluded.enveloped_at_ms),
  admitted_at_ms = max(admitted_at_ms, excluded.admitted_at_ms),
  admitted_id = max(admitted_id, excluded.admitted_id),
  parked = max(parked, excluded.parked),
  lost_id = max(lost_id, excluded.lost_id),
  begun_topic = CASE
    WHEN (excluded.begun_id, excluded.begun_topic) > (begun_id, begun_topic)
    THEN excluded.begun_topic ELSE begun_topic END,
  begun_id = max(begun_id, excluded.begun_id),
  started_attempt = max(started_attempt, excluded.started_attempt),
  ended_attempt = max(ended_attempt, excluded.ended_attempt),
  outcome = max(outcome, excluded.outcome),
  completed = max(completed, excluded.completed)

-- name: dispatches.one
SELECT workflow_id, package, envelope_topic, envelope_id, enveloped_at_ms, admitted_at_ms,
  begun_topic, begun_id, started_attempt, ended_attempt, outcome, parked, admitted_id,
  lost_id
FROM @dispatches
WHERE workflow_id = :workflow_id

-- name: dispatches.outstanding
SELECT count(*) FROM @dispatches
WHERE admitted_at_ms > 0 AND ended_attempt = 0 AND outcome = '' AND parked = 0
  AND lost_id < max(1, admitted_id) AND package = :package

-- name: dispatches.outstanding_places
SELECT envelope_topic, envelope_id FROM @dispatches
WHERE admitted_at_ms > 0 AND ended_attempt = 0 AND outcome = '' AND parked = 0
  AND lost_id < max(1, admitted_id) AND package = :package

-- name: dispatches.waiting
SELECT workflow_id, package, envelope_topic, envelope_id, enveloped_at_ms, admitted_at_ms,
  begun_topic, begun_id, started_attempt, ended_attempt, outcome, parked, admitted_id,
  lost_id
FROM @dispatches
WHERE enveloped_at_ms > 0 AND admitted_at_ms = 0 AND started_attempt = 0 AND ended_attempt = 0
  AND outcome = ''
  AND package = :package AND enveloped_at_ms <= :until_ms
ORDER BY enveloped_at_ms, envelope_topic, envelope_id
LIMIT :limit

-- name: dispatches.lost
SELECT workflow_id, package, envelope_topic, envelope_id, enveloped_at_ms, admitted_at_ms,
  begun_topic, begun_id, started_attempt, ended_attempt, outcome, parked, admitted_id,
  lost_id
FROM @dispatches
WHERE outcome = '' AND lost_id >= max(1, envelope_id)
  AND package = :package AND enveloped_at_ms <= :until_ms
ORDER BY enveloped_at_ms, envelope_topic, envelope_id
LIMIT :limit

-- name: dispatches.count_lost
SELECT count(*) FROM @dispatches
WHERE outcome = '' AND lost_id >= max(1, envelope_id)

-- name: dispatches.count_waiting
SELECT count(*), coalesce(min(enveloped_at_ms), 0) FROM @dispatches
WHERE enveloped_at_ms > 0 AND admitted_at_ms = 0 AND started_attempt = 0 AND ended_attempt = 0
  AND outcome = ''
  AND package = :package AND enveloped_at_ms <= :until_ms

-- name: dispatches.under_way
SELECT workflow_id, package, envelope_topic, envelope_id, enveloped_at_ms, admitted_at_ms,
  begun_topic, begun_id, started_attempt, ended_attempt, outcome, parked, admitted_id,
  lost_id
FROM @dispatches
WHERE outcome = '' AND (admitted_at_ms > 0 OR started_attempt > 0)
  AND workflow_id > :after AND workflow_id < :before
ORDER BY workflow_id
LIMIT :limit

-- name: dispatches.unreported
SELECT workflow_id, package, envelope_topic, envelope_id, enveloped_at_ms, admitted_at_ms,
  begun_topic, begun_id, started_attempt, ended_attempt, outcome, parked, admitted_id,
  lost_id
FROM @dispatches
WHERE admitted_at_ms > 0 AND outcome <> '' AND completed = 0
  AND package = :package
LIMIT :limit

-- name: dispatches.figures
SELECT
  coalesce(sum(started_attempt > ended_attempt), 0),
  coalesce(sum(ended_attempt > 0 AND ended_attempt >= started_attempt), 0),
  coalesce(sum(started_attempt = 0 AND ended_attempt = 0), 0)
FROM @dispatches
WHERE outcome = '' AND (admitted_at_ms > 0 OR started_attempt > 0)
  AND lost_id < max(1, admitted_id)

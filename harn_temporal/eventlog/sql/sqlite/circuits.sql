-- name: circuits.create
-- Only circuits that are not closed, or have failures to count, have a row.
CREATE TABLE @circuits (
  destination TEXT NOT NULL PRIMARY KEY,
  failures INTEGER NOT NULL,
  open_until_ms INTEGER NOT NULL,
  probe TEXT NOT NULL,
  probe_until_ms INTEGER NOT NULL
);

CREATE INDEX @circuits_by_probe ON @circuits (probe, destination);

-- name: circuits.write
INSERT INTO @circuits (destination, failures, open_until_ms, probe, probe_until_ms)
VALUES (:destination, :failures, :open_until_ms, :probe, :probe_until_ms)
ON CONFLICT (destination) DO UPDATE SET
  failures = excluded.failures, open_until_ms = excluded.open_until_ms,
  probe = excluded.probe, probe_until_ms = excluded.probe_until_ms

-- name: circuits.drop
DELETE FROM @circuits WHERE destination = :destination

-- name: circuits.find
SELECT destination, failures, open_until_ms, probe, probe_until_ms
FROM @circuits WHERE destination = :destination

-- name: circuits.list
SELECT destination, failures, open_until_ms, probe, probe_until_ms
FROM @circuits WHERE destination > :after ORDER BY destination LIMIT :limit

-- name: circuits.probed_by
SELECT destination, failures, open_until_ms, probe, probe_until_ms
FROM @circuits WHERE probe = :holder ORDER BY destination

-- name: tallies.create
CREATE TABLE @tallies (
  what TEXT NOT NULL,
  labels TEXT NOT NULL,
  n INTEGER NOT NULL,
  PRIMARY KEY (what, labels)
) WITHOUT ROWID;

-- name: tallies.add
INSERT INTO @tallies (what, labels, n) VALUES (:what, :labels, 1)
ON CONFLICT (what, labels) DO UPDATE SET n = n + 1

-- name: tallies.all
SELECT what, labels, n FROM @tallies ORDER BY what, labels

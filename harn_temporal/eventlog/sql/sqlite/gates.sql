-- name: gates.create
-- A gate is told from others by its id, which is a hash; its name is for people.
-- `hits` and `slots` number what follows; `idle_from_ms` says from when on nothing here counts.
CREATE TABLE @gates (
  gate INTEGER PRIMARY KEY,
  kind TEXT NOT NULL,
  gate_id TEXT NOT NULL,
  name TEXT NOT NULL,
  binding_key TEXT NOT NULL,
  most INTEGER NOT NULL,
  period_ms INTEGER NOT NULL,
  held INTEGER NOT NULL,
  waiting INTEGER NOT NULL,
  hits INTEGER NOT NULL,
  slots INTEGER NOT NULL,
  first_at_ms INTEGER NOT NULL,
  due_at_ms INTEGER NOT NULL,
  last_at_ms INTEGER NOT NULL,
  idle_from_ms INTEGER NOT NULL,
  batch_id TEXT NOT NULL
);

CREATE UNIQUE INDEX @gates_by_id ON @gates (gate_id, kind);

CREATE INDEX @gates_by_name ON @gates (name, kind, gate_id);

CREATE INDEX @gates_idle ON @gates (idle_from_ms);

CREATE TABLE @gates_permits (
  gate INTEGER NOT NULL,
  holder TEXT NOT NULL,
  permit_id TEXT NOT NULL,
  arrived_at_ms INTEGER NOT NULL,
  acquired_at_ms INTEGER NOT NULL,
  expires_at_ms INTEGER NOT NULL,
  PRIMARY KEY (gate, holder)
) WITHOUT ROWID;

CREATE INDEX @gates_permits_by_holder ON @gates_permits (holder);

CREATE INDEX @gates_permits_of_gate ON @gates_permits (gate, expires_at_ms);

CREATE INDEX @gates_permits_expiring ON @gates_permits (expires_at_ms);

CREATE INDEX @gates_permits_waited_for ON @gates_permits (acquired_at_ms)
WHERE acquired_at_ms > arrived_at_ms;

CREATE TABLE @gates_waiters (
  gate INTEGER NOT NULL,
  holder TEXT NOT NULL,
  permit_id TEXT NOT NULL,
  standing INTEGER NOT NULL,
  arrived_at_ms INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  until_ms INTEGER NOT NULL,
  ttl_ms INTEGER NOT NULL,
  PRIMARY KEY (gate, holder)
) WITHOUT ROWID;

CREATE INDEX @gates_waiters_in_order ON @gates_waiters (gate, standing, arrived_at_ms, seq);

CREATE INDEX @gates_waiters_by_holder ON @gates_waiters (holder);

CREATE TABLE @gates_hits (
  gate INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  at_ms INTEGER NOT NULL,
  PRIMARY KEY (gate, seq)
) WITHOUT ROWID;

CREATE TABLE @gates_slots (
  gate INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  at_ms INTEGER NOT NULL,
  PRIMARY KEY (gate, seq)
) WITHOUT ROWID;

CREATE TABLE @gates_freed (
  gate INTEGER NOT NULL,
  at_ms INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  PRIMARY KEY (gate, at_ms, seq)
) WITHOUT ROWID;

-- name: gates.find
SELECT gate, kind, gate_id, name, binding_key, most, period_ms, held, waiting, hits, slots,
  first_at_ms, due_at_ms, last_at_ms, idle_from_ms, batch_id
FROM @gates WHERE gate_id = :gate_id AND kind = :kind

-- name: gates.of
SELECT gate, kind, gate_id, name, binding_key, most, period_ms, held, waiting, hits, slots,
  first_at_ms, due_at_ms, last_at_ms, idle_from_ms, batch_id
FROM @gates WHERE gate = :gate

-- name: gates.named
SELECT gate, kind, gate_id, name, binding_key, most, period_ms, held, waiting, hits, slots,
  first_at_ms, due_at_ms, last_at_ms, idle_from_ms, batch_id
FROM @gates WHERE name = :gate_name ORDER BY kind, gate_id

-- name: gates.list
SELECT gate, kind, gate_id, name, binding_key, most, period_ms, held, waiting, hits, slots,
  first_at_ms, due_at_ms, last_at_ms, idle_from_ms, batch_id
FROM @gates WHERE (name, kind, gate_id) > (:gate_name, :kind, :gate_id)
ORDER BY name, kind, gate_id LIMIT :limit

-- name: gates.add
INSERT INTO @gates (
  kind, gate_id, name, binding_key, most, period_ms, held, waiting, hits, slots,
  first_at_ms, due_at_ms, last_at_ms, idle_from_ms, batch_id
)
VALUES (:kind, :gate_id, :gate_name, :binding_key, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, '')
RETURNING gate

-- name: gates.write
UPDATE @gates SET
  most = :most, period_ms = :period_ms, held = :held, waiting = :waiting, hits = :hits,
  slots = :slots, first_at_ms = :first_at_ms, due_at_ms = :due_at_ms, last_at_ms = :last_at_ms,
  idle_from_ms = :idle_from_ms, batch_id = :batch_id
WHERE gate = :gate

-- name: gates.add_permit
INSERT INTO @gates_permits (
  gate, holder, permit_id, arrived_at_ms, acquired_at_ms, expires_at_ms
)
VALUES (:gate, :holder, :permit_id, :arrived_at_ms, :acquired_at_ms, :expires_at_ms)
ON CONFLICT (gate, holder) DO UPDATE SET
  permit_id = excluded.permit_id, arrived_at_ms = excluded.arrived_at_ms,
  acquired_at_ms = excluded.acquired_at_ms, expires_at_ms = excluded.expires_at_ms

-- name: gates.renew_permit
UPDATE @gates_permits SET expires_at_ms = :expires_at_ms
WHERE gate = :gate AND holder = :holder AND permit_id = :permit_id

-- name: gates.drop_permit
DELETE FROM @gates_permits WHERE gate = :gate AND holder = :holder

-- name: gates.permit
SELECT gate, holder, permit_id, arrived_at_ms, acquired_at_ms, expires_at_ms
FROM @gates_permits WHERE gate = :gate AND holder = :holder

-- name: gates.permits
SELECT gate, holder, permit_id, arrived_at_ms, acquired_at_ms, expires_at_ms
FROM @gates_permits WHERE gate = :gate ORDER BY expires_at_ms, holder LIMIT :limit

-- name: gates.permits_within
SELECT gate, holder, permit_id, arrived_at_ms, acquired_at_ms, expires_at_ms
FROM @gates_permits WHERE gate = :gate AND holder > :after AND holder < :before ORDER BY holder

-- name: gates.all_permits
SELECT gate, holder, permit_id, arrived_at_ms, acquired_at_ms, expires_at_ms
FROM @gates_permits WHERE (gate, holder) > (:gate, :holder) ORDER BY gate, holder LIMIT :limit

-- name: gates.permits_of
SELECT gate, holder, permit_id, arrived_at_ms, acquired_at_ms, expires_at_ms
FROM @gates_permits WHERE holder = :holder ORDER BY gate

-- name: gates.expired
SELECT gate, holder, permit_id, arrived_at_ms, acquired_at_ms, expires_at_ms
FROM @gates_permits WHERE expires_at_ms <= :now_ms ORDER BY expires_at_ms LIMIT :limit

-- name: gates.waited_for
SELECT gate, holder, permit_id, arrived_at_ms, acquired_at_ms, expires_at_ms
FROM @gates_permits
WHERE acquired_at_ms > arrived_at_ms AND acquired_at_ms > :after_ms AND acquired_at_ms <= :until_ms
ORDER BY acquired_at_ms DESC LIMIT :limit

-- name: gates.add_waiter
INSERT INTO @gates_waiters (
  gate, holder, permit_id, standing, arrived_at_ms, seq, until_ms, ttl_ms
)
VALUES (:gate, :holder, :permit_id, :standing, :arrived_at_ms, :seq, :until_ms, :ttl_ms)

-- name: gates.move_waiter
UPDATE @gates_waiters SET until_ms = :until_ms WHERE gate = :gate AND holder = :holder

-- name: gates.drop_waiter
DELETE FROM @gates_waiters WHERE gate = :gate AND holder = :holder

-- name: gates.drop_waiters
DELETE FROM @gates_waiters WHERE gate = :gate

-- name: gates.waiter
SELECT gate, holder, permit_id, standing, arrived_at_ms, seq, until_ms, ttl_ms
FROM @gates_waiters WHERE gate = :gate AND holder = :holder

-- name: gates.waiters
SELECT gate, holder, permit_id, standing, arrived_at_ms, seq, until_ms, ttl_ms
FROM @gates_waiters WHERE gate = :gate
ORDER BY standing, arrived_at_ms, seq LIMIT :limit

-- name: gates.waiters_of
SELECT gate, holder, permit_id, standing, arrived_at_ms, seq, until_ms, ttl_ms
FROM @gates_waiters WHERE holder = :holder ORDER BY gate

-- name: gates.ahead
SELECT count(*) FROM (
  SELECT 1 FROM @gates_waiters
  WHERE gate = :gate AND (standing, arrived_at_ms, seq) < (:standing, :arrived_at_ms, :seq)
  LIMIT :limit
)

-- name: gates.add_hit
INSERT INTO @gates_hits (gate, seq, at_ms) VALUES (:gate, :seq, :at_ms)
ON CONFLICT DO NOTHING

-- name: gates.drop_hits
DELETE FROM @gates_hits WHERE gate = :gate AND seq <= :seq

-- name: gates.hits
SELECT seq, at_ms FROM @gates_hits WHERE gate = :gate AND seq IN (:first, :last)

-- name: gates.add_slot
INSERT INTO @gates_slots (gate, seq, at_ms) VALUES (:gate, :seq, :at_ms)
ON CONFLICT DO NOTHING

-- name: gates.drop_slots
DELETE FROM @gates_slots WHERE gate = :gate AND seq <= :seq

-- name: gates.slot
SELECT at_ms FROM @gates_slots WHERE gate = :gate AND seq = :seq

-- name: gates.free_slot
INSERT INTO @gates_freed (gate, at_ms, seq) VALUES (:gate, :at_ms, :seq)
ON CONFLICT DO NOTHING

-- name: gates.freed
SELECT at_ms, seq FROM @gates_freed WHERE gate = :gate AND at_ms > :now_ms
ORDER BY at_ms, seq LIMIT 1

-- name: gates.take_freed
DELETE FROM @gates_freed WHERE gate = :gate AND at_ms = :at_ms AND seq = :seq

-- name: gates.drop_freed
DELETE FROM @gates_freed WHERE gate = :gate AND at_ms <= :at_ms

-- name: gates.idle
SELECT gate FROM @gates WHERE idle_from_ms <= :until_ms ORDER BY idle_from_ms LIMIT :limit

-- name: gates.forget_hits
DELETE FROM @gates_hits WHERE (gate, seq) IN (
  SELECT gate, seq FROM @gates_hits WHERE gate = :gate LIMIT :limit
)

-- name: gates.forget_slots
DELETE FROM @gates_slots WHERE (gate, seq) IN (
  SELECT gate, seq FROM @gates_slots WHERE gate = :gate LIMIT :limit
)

-- name: gates.forget_freed
DELETE FROM @gates_freed WHERE (gate, at_ms, seq) IN (
  SELECT gate, at_ms, seq FROM @gates_freed WHERE gate = :gate LIMIT :limit
)

-- name: gates.forget
DELETE FROM @gates WHERE gate = :gate

-- name: inbox.create
-- `tenant_id` is empty where the event has none.
CREATE TABLE @inbox_claims (
  package TEXT NOT NULL,
  tenant_id TEXT NOT NULL,
  binding_id TEXT NOT NULL,
  dedupe_key TEXT NOT NULL,
  expires_at_ms INTEGER NOT NULL,
  PRIMARY KEY (package, tenant_id, binding_id, dedupe_key)
);

CREATE TABLE @inbox_outcomes (
  workflow_id TEXT NOT NULL PRIMARY KEY,
  status TEXT NOT NULL,
  topic TEXT NOT NULL,
  event_id INTEGER NOT NULL
);

-- name: inbox.claim
INSERT INTO @inbox_claims (package, tenant_id, binding_id, dedupe_key, expires_at_ms)
VALUES (:package, :tenant_id, :binding_id, :dedupe_key, :expires_at_ms)
ON CONFLICT (package, tenant_id, binding_id, dedupe_key) DO UPDATE SET
  expires_at_ms = max(expires_at_ms, excluded.expires_at_ms)

-- name: inbox.claim_expiry
SELECT expires_at_ms FROM @inbox_claims
WHERE package = :package AND tenant_id = :tenant_id
  AND binding_id = :binding_id AND dedupe_key = :dedupe_key

-- name: inbox.figures
SELECT coalesce(sum(expires_at_ms > :now_ms), 0), coalesce(sum(expires_at_ms <= :now_ms), 0)
FROM @inbox_claims

-- name: inbox.end
INSERT INTO @inbox_outcomes (workflow_id, status, topic, event_id)
VALUES (:workflow_id, :status, :topic, :event_id)
ON CONFLICT (workflow_id) DO UPDATE SET
  status = excluded.status, topic = excluded.topic, event_id = excluded.event_id
WHERE (excluded.topic, excluded.event_id) < (topic, event_id)

-- name: inbox.outcome
SELECT status, topic, event_id FROM @inbox_outcomes WHERE workflow_id = :workflow_id

-- name: bindings.create
CREATE TABLE @bindings (
  package TEXT NOT NULL,
  trigger_id TEXT NOT NULL,
  version INTEGER NOT NULL,
  binding_key TEXT NOT NULL,
  provider TEXT NOT NULL,
  kind TEXT NOT NULL,
  handler_kind TEXT NOT NULL,
  fingerprint TEXT NOT NULL,
  state TEXT NOT NULL,
  changed_at_ms INTEGER NOT NULL,
  event_id INTEGER NOT NULL,
  definition TEXT NOT NULL,
  PRIMARY KEY (trigger_id, version, package)
);

-- name: bindings.move
INSERT INTO @bindings (
  package, trigger_id, version, binding_key, provider, kind, handler_kind, fingerprint, state,
  changed_at_ms, event_id, definition
)
VALUES (
  :package, :trigger_id, :version, :binding_key, :provider, :kind, :handler_kind, :fingerprint,
  :state, :changed_at_ms, :event_id, :definition
)
ON CONFLICT (trigger_id, version, package) DO UPDATE SET
  binding_key = excluded.binding_key,
  provider = excluded.provider,
  kind = excluded.kind,
  handler_kind = excluded.handler_kind,
  fingerprint = excluded.fingerprint,
  state = excluded.state,
  changed_at_ms = excluded.changed_at_ms,
  event_id = excluded.event_id,
  definition = CASE excluded.definition WHEN '' THEN definition ELSE excluded.definition END
WHERE excluded.event_id > event_id

-- name: bindings.version
SELECT max(version) FROM @bindings
WHERE package = :package AND trigger_id = :trigger_id AND fingerprint = :fingerprint

-- name: bindings.highest
SELECT coalesce(max(version), 0) FROM @bindings WHERE trigger_id = :trigger_id

-- name: bindings.all
SELECT package, trigger_id, version, binding_key, provider, kind, handler_kind, fingerprint, state,
  changed_at_ms
FROM @bindings
ORDER BY package, trigger_id, version

-- name: bindings.one
SELECT package, trigger_id, version, binding_key, provider, kind, handler_kind, fingerprint, state,
  changed_at_ms
FROM @bindings
WHERE trigger_id = :trigger_id AND version = :version
ORDER BY package DESC
LIMIT 1

-- name: bindings.definition
SELECT definition FROM @bindings
WHERE trigger_id = :trigger_id AND version = :version AND definition <> ''
ORDER BY package DESC
LIMIT 1

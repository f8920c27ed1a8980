-- name: cancel_requests.create
CREATE TABLE @cancel_requests (
  binding_key TEXT NOT NULL,
  event_id TEXT NOT NULL,
  PRIMARY KEY (binding_key, event_id)
);

-- name: cancel_requests.note
INSERT INTO @cancel_requests (binding_key, event_id) VALUES (:binding_key, :event_id)
ON CONFLICT (binding_key, event_id) DO NOTHING

-- name: cancel_requests.one
SELECT 1 FROM @cancel_requests WHERE binding_key = :binding_key AND event_id = :event_id

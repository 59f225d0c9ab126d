-- name: find_mappings
-- By the primary key.
SELECT m.event_type, m.notification_type, m.changed_by, m.changed_at
FROM {event_types: event_type text} AS g
JOIN event_mapping AS m ON m.tenant_id = :tenant_id AND m.event_type = g.event_type;

-- name: list_mappings
-- Pages by the primary key.
SELECT m.event_type, m.notification_type, m.changed_by, m.changed_at
FROM event_mapping AS m
WHERE m.tenant_id = :tenant_id AND m.event_type > :after
ORDER BY m.event_type
LIMIT :limit;

-- name: put_mapping
-- Under the lock of its event type.
INSERT INTO event_mapping (tenant_id, event_type, notification_type, changed_by, changed_at)
VALUES (:tenant_id, :event_type, :notification_type, :actor, now())
ON CONFLICT (tenant_id, event_type) DO UPDATE
SET
  notification_type = excluded.notification_type, changed_by = excluded.changed_by, changed_at = excluded.changed_at;

-- name: delete_mapping
-- From now on nobody has said what the event type leads to.
DELETE FROM event_mapping WHERE tenant_id = :tenant_id AND event_type = :event_type;

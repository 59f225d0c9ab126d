-- name: read_type_setting
-- What the whole tenant says. That a type is on is written where the row says something else, and says nothing.
SELECT
  s.event_type, NULL AS unit_guid, nullif(s.enabled, true) AS enabled, s.recipients, s.channels, s.changed_by,
  s.changed_at
FROM type_setting AS s
WHERE
  s.tenant_id = :tenant_id AND s.event_type = :event_type
  AND (NOT s.enabled OR s.recipients IS NOT NULL OR s.channels IS NOT NULL);

-- name: read_unit_setting
-- What one business unit says.
SELECT s.event_type, s.unit_guid, s.enabled, s.recipients, s.channels, s.changed_by, s.changed_at
FROM unit_setting AS s
WHERE s.tenant_id = :tenant_id AND s.event_type = :event_type AND s.unit_guid = :unit_guid;

-- name: put_type_setting
-- Under the lock of its type; `enabled` is never null here, so what is not switched off is on.
INSERT INTO type_setting (tenant_id, event_type, enabled, recipients, channels, changed_by, changed_at)
VALUES (:tenant_id, :event_type, coalesce(CAST(:enabled AS boolean), true), :recipients, :channels, :actor, now())
ON CONFLICT (tenant_id, event_type) DO UPDATE
SET
  enabled = excluded.enabled, recipients = excluded.recipients, channels = excluded.channels,
  changed_by = excluded.changed_by, changed_at = excluded.changed_at;

-- name: put_unit_setting
-- Under the lock of its type.
INSERT INTO unit_setting (tenant_id, event_type, unit_guid, enabled, recipients, channels, changed_by, changed_at)
VALUES (:tenant_id, :event_type, :unit_guid, :enabled, :recipients, :channels, :actor, now())
ON CONFLICT (tenant_id, event_type, unit_guid) DO UPDATE
SET
  enabled = excluded.enabled, recipients = excluded.recipients, channels = excluded.channels,
  changed_by = excluded.changed_by, changed_at = excluded.changed_at;

-- name: delete_type_setting
-- It says nothing any more.
DELETE FROM type_setting WHERE tenant_id = :tenant_id AND event_type = :event_type;

-- name: delete_unit_setting
-- It says nothing any more.
DELETE FROM unit_setting WHERE tenant_id = :tenant_id AND event_type = :event_type AND unit_guid = :unit_guid;

-- name: list_settings
-- Both tables in one order: by type, and of one type the tenant's before its units'. A tenant has some dozens.
SELECT s.event_type, s.unit_guid, s.enabled, s.recipients, s.channels, s.changed_by, s.changed_at
FROM (
  SELECT
    t.event_type, NULL AS unit_guid, '' AS unit, nullif(t.enabled, true) AS enabled, t.recipients, t.channels,
    t.changed_by, t.changed_at
  FROM type_setting AS t
  WHERE t.tenant_id = :tenant_id AND (NOT t.enabled OR t.recipients IS NOT NULL OR t.channels IS NOT NULL)
  UNION ALL
  SELECT
    u.event_type, u.unit_guid, CAST(u.unit_guid AS text), u.enabled, u.recipients, u.channels, u.changed_by,
    u.changed_at
  FROM unit_setting AS u
  WHERE u.tenant_id = :tenant_id
) AS s
WHERE
  s.event_type COLLATE "C" > :after_type
  OR (s.event_type = :after_type AND s.unit COLLATE "C" > :after_unit)
ORDER BY s.event_type COLLATE "C", s.unit COLLATE "C"
LIMIT :limit;

-- name: find_settings
-- Across tenants, as workers ask, and one row for each that is asked for, because most have nothing set.
SELECT
  g.place, nullif(t.enabled, true) AS enabled, t.recipients, t.channels, u.enabled AS unit_enabled,
  u.recipients AS unit_recipients, u.channels AS unit_channels
FROM {asked: tenant_id text, event_type text, unit_guid guid, place place} AS g
LEFT JOIN type_setting AS t ON t.tenant_id = g.tenant_id AND t.event_type = g.event_type
LEFT JOIN unit_setting AS u
  ON u.tenant_id = g.tenant_id AND u.event_type = g.event_type AND u.unit_guid = g.unit_guid;

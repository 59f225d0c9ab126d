-- name: find_reminder
-- By the primary key.
SELECT s.*
FROM reminder_setting AS s
WHERE s.tenant_id = :tenant_id AND s.guid = :guid;

-- name: find_reminders
-- By the index of types; whoever puts one in holds them to a few hundred of a type.
SELECT s.*
FROM reminder_setting AS s
WHERE s.tenant_id = :tenant_id AND s.source_type = :source_type
ORDER BY s.guid;

-- name: list_reminders
-- Pages by the primary key.
SELECT s.*
FROM reminder_setting AS s
WHERE s.tenant_id = :tenant_id AND s.guid > :after
ORDER BY s.guid
LIMIT :limit;

-- name: put_reminder
-- Under the lock of its guid. Whoever plans the version before has lost its claim, and begins anew.
INSERT INTO reminder_setting (
  tenant_id, guid, source_type, setting, version, planned_version, plan_at, plan_cursor, plan_token, changed_by,
  changed_at
)
VALUES (:tenant_id, :guid, :source_type, :setting, 1, 0, now(), '', 0, :actor, now())
ON CONFLICT (tenant_id, guid) DO UPDATE
SET
  setting = excluded.setting, version = reminder_setting.version + 1, plan_at = excluded.plan_at, plan_cursor = '',
  plan_token = reminder_setting.plan_token + 1, changed_by = excluded.changed_by, changed_at = excluded.changed_at;

-- name: lock_settings_to_plan
-- Those that have waited longest; a setting that was given back with its place goes behind the others. One that another
-- worker takes is passed over.
SELECT s.tenant_id, s.guid
FROM reminder_setting AS s
WHERE s.plan_at IS NOT NULL AND s.plan_at <= now()
ORDER BY s.plan_at, s.tenant_id, s.guid
LIMIT :limit
FOR UPDATE SKIP LOCKED;

-- name: take_setting
-- One of the few that are locked.
UPDATE reminder_setting
SET plan_at = now() + :lease, plan_token = plan_token + 1
WHERE tenant_id = :tenant_id AND guid = :guid
RETURNING *;

-- name: finish_setting
-- Where the claim still stands, and the setting is as it was planned.
UPDATE reminder_setting
SET
  plan_at = CASE WHEN CAST(:cursor AS text) IS NULL THEN NULL ELSE now() END,
  plan_cursor = coalesce(CAST(:cursor AS text), ''),
  planned_version = CASE WHEN CAST(:cursor AS text) IS NULL THEN version ELSE planned_version END,
  tzdata_version = CASE WHEN CAST(:cursor AS text) IS NULL THEN :tzdata_version ELSE tzdata_version END,
  plan_token = plan_token + 1
WHERE
  tenant_id = :tenant_id AND guid = :guid AND plan_token = :token AND version = :version AND plan_at IS NOT NULL;

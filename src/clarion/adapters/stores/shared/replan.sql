-- name: find_settings_of_tenant
-- Pages by the primary key.
SELECT s.tenant_id, s.guid
FROM reminder_setting AS s
WHERE s.tenant_id = :tenant_id AND s.guid > :after
ORDER BY s.guid
LIMIT :limit;

-- name: find_settings_of_other_editions
-- By the index of editions, those before and behind the present one; there are none but after an update.
SELECT found.tenant_id, found.guid
FROM (
  SELECT s.tenant_id, s.guid
  FROM reminder_setting AS s
  WHERE s.plan_at IS NULL AND s.tzdata_version < :tzdata_version
  UNION ALL
  SELECT s.tenant_id, s.guid
  FROM reminder_setting AS s
  WHERE s.plan_at IS NULL AND s.tzdata_version > :tzdata_version
) AS found
LIMIT :limit;

-- name: replan_setting
-- One of those that were found; there are few. Whoever plans it has lost its claim, and begins anew.
UPDATE reminder_setting
SET planned_version = 0, plan_at = now(), plan_cursor = '', plan_token = plan_token + 1
WHERE tenant_id = :tenant_id AND guid = :guid;

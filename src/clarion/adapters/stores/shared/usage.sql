-- name: count_usage
-- Adds what a process counted since it said so last, and gives what all processes have counted: one statement, about
-- once a second. Sorted, so that two processes wait for each other. Counts of another day start again.
INSERT INTO usage_count (tenant_id, key_id, day, requests, notifications, recipients, last_used_at)
SELECT g.tenant_id, g.key_id, today(), g.requests, g.notifications, g.recipients, now()
FROM {uses: tenant_id text, key_id text, requests whole, notifications whole, recipients whole} AS g
WHERE true
ORDER BY g.tenant_id, g.key_id
ON CONFLICT (tenant_id, key_id) DO UPDATE
SET
  day = excluded.day,
  requests = excluded.requests + CASE WHEN usage_count.day = excluded.day THEN usage_count.requests ELSE 0 END,
  notifications
    = excluded.notifications + CASE WHEN usage_count.day = excluded.day THEN usage_count.notifications ELSE 0 END,
  recipients = excluded.recipients + CASE WHEN usage_count.day = excluded.day THEN usage_count.recipients ELSE 0 END,
  last_used_at = excluded.last_used_at
RETURNING
  tenant_id, key_id, day, requests, notifications, recipients, requests_max, notifications_max, recipients_max,
  last_used_at, now() AS now;

-- name: list_usage
-- The tenant's own row is first, since its key is empty.
SELECT
  tenant_id, key_id, day, requests, notifications, recipients, requests_max, notifications_max, recipients_max,
  last_used_at, now() AS now
FROM usage_count
WHERE tenant_id = :tenant_id
ORDER BY key_id COLLATE "C";

-- name: set_quota
-- The counts stay. Limits that stand so already are no change.
INSERT INTO usage_count (tenant_id, key_id, day, requests_max, notifications_max, recipients_max)
VALUES (:tenant_id, :key_id, today(), :requests, :notifications, :recipients)
ON CONFLICT (tenant_id, key_id) DO UPDATE
SET
  requests_max = excluded.requests_max,
  notifications_max = excluded.notifications_max,
  recipients_max = excluded.recipients_max
WHERE
  usage_count.requests_max IS DISTINCT FROM excluded.requests_max
  OR usage_count.notifications_max IS DISTINCT FROM excluded.notifications_max
  OR usage_count.recipients_max IS DISTINCT FROM excluded.recipients_max;

-- name: put_subscription
-- Nothing is written where it is so already. Whoever has claimed it plans what was before: another token ends that claim.
INSERT INTO report_subscription AS s (tenant_id, guid, subscription, version, plan_at, changed_by, changed_at)
SELECT :tenant_id, :guid, :subscription, 1, now(), :actor, now()
WHERE true
ON CONFLICT (tenant_id, guid) DO UPDATE SET
  subscription = excluded.subscription, version = s.version + 1, plan_at = now(), plan_token = s.plan_token + 1,
  changed_by = excluded.changed_by, changed_at = now()
WHERE s.subscription <> excluded.subscription;

-- name: find_subscription
-- By the primary key.
SELECT s.tenant_id, s.guid, s.subscription, s.version, s.plan_token, s.changed_by, s.changed_at
FROM report_subscription AS s
WHERE s.tenant_id = :tenant_id AND s.guid = :guid;

-- name: list_subscriptions
-- Pages by the primary key.
SELECT s.tenant_id, s.guid, s.subscription, s.version, s.plan_token, s.changed_by, s.changed_at
FROM report_subscription AS s
WHERE s.tenant_id = :tenant_id AND s.guid > :after
ORDER BY s.guid
LIMIT :limit;

-- name: claim_subscriptions
-- Those that have waited longest. What another worker holds is passed over; one that was lost leaves its claim to the
-- lease, since what is to be planned and what is claimed wait for one time.
UPDATE report_subscription AS s
SET plan_at = now() + CAST(:lease AS interval), plan_token = s.plan_token + 1
FROM (
  SELECT d.tenant_id AS of_tenant, d.guid AS of_guid
  FROM report_subscription AS d
  WHERE d.plan_at <= now()
  ORDER BY d.plan_at, d.tenant_id, d.guid
  LIMIT :limit
  FOR UPDATE SKIP LOCKED
) AS g
WHERE s.tenant_id = g.of_tenant AND s.guid = g.of_guid
RETURNING tenant_id, guid, subscription, version, plan_token, changed_by, changed_at;

-- name: finish_subscription
-- Where nobody has changed or claimed it since.
UPDATE report_subscription
SET plan_at = CASE WHEN NOT :is_over THEN now() + CAST(:look_again AS interval) END
WHERE tenant_id = :tenant_id AND guid = :guid AND plan_token = :token;

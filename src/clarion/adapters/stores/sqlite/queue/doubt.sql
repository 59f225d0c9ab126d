-- name: find_expired
-- Rows whose worker said nothing before its lease ended, the longest silent first: the head of a partial index.
SELECT id
FROM outgoing_message
WHERE lease_until IS NOT NULL AND lease_until <= clarion_now()
ORDER BY lease_until, id
LIMIT :limit;

-- name: find_doubts
-- Rows in doubt that nobody has decided about, the oldest first: the head of a partial index.
SELECT
  id, bucket, tenant_id, version, account, doubt_policy, replays,
  clarion_now() - coalesce(first_unproven_at, settle_at) AS unproven_for
FROM outgoing_message
WHERE settle_at IS NOT NULL AND settle_at <= clarion_now()
ORDER BY settle_at, id
LIMIT :limit;

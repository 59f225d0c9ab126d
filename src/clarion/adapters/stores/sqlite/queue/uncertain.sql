-- name: find_expired
-- Rows whose worker said nothing before its lease ended, the longest silent first: the head of a partial index.
SELECT id
FROM outgoing_message
WHERE lease_until IS NOT NULL AND lease_until <= clarion_now()
ORDER BY lease_until, id
LIMIT :limit;

-- name: find_uncertain
-- Rows uncertain that nobody has decided about, the oldest first, along a partial index; those of accounts that other
-- workers serve are passed over.
SELECT
  id, bucket, tenant_id, version, account, message_id, channel, attempts, uncertain_policy, replays,
  (
    SELECT count(*)
    FROM delivery_attempt AS d
    WHERE d.bucket = o.bucket AND d.outgoing_id = o.id AND d.status = 'Unknown' AND d.latency_ms IS NOT NULL
  ) AS unanswered,
  clarion_now() - coalesce(first_unknown_at, settle_at) AS unknown_for,
  cancel_at IS NOT NULL OR coalesce(expires_at <= clarion_now(), false) AS is_over
FROM outgoing_message AS o
WHERE
  settle_at IS NOT NULL AND settle_at <= clarion_now() AND account IN (SELECT g.value FROM json_each(:accounts) AS g)
ORDER BY settle_at, id
LIMIT :limit;

-- name: lock_expired_rows
-- Claims whose lease ran out, the oldest first. One that is just being recorded is passed over.
SELECT o.bucket, o.id
FROM outgoing_message AS o
WHERE o.lease_until <= now()
ORDER BY o.lease_until, o.id
LIMIT :limit
FOR UPDATE SKIP LOCKED;

-- name: find_uncertain
-- Without a lock, because the decision about a row is written by its version. How long its outcome is unknown is
-- judged by the store's clock, as is the window of a provider that de-duplicates.
SELECT
  o.id, o.bucket, o.tenant_id, o.version, o.account, o.message_id, o.channel, o.attempts, o.attempts_max,
  (
    SELECT count(*)
    FROM delivery_attempt AS d
    WHERE d.bucket = o.bucket AND d.outgoing_id = o.id AND d.status = 'Unknown' AND d.latency_ms IS NOT NULL
  ) AS unanswered,
  o.uncertain_policy, o.replays, now() - coalesce(o.first_unknown_at, o.settle_at) AS unknown_for,
  o.cancel_at IS NOT NULL OR coalesce(o.expires_at <= now(), false) AS is_over
FROM outgoing_message AS o
WHERE o.settle_at <= now() AND o.account IN {accounts: text}
ORDER BY o.settle_at, o.id
LIMIT :limit;

-- name: find_retried_row
-- A person names a row by its id alone. There are indexes of those that can be sent again, one for each state.
SELECT o.bucket, o.id
FROM outgoing_message AS o
WHERE o.tenant_id = :tenant_id AND o.id = :id AND o.status = 'Uncertain'
UNION ALL
SELECT o.bucket, o.id
FROM outgoing_message AS o
WHERE o.tenant_id = :tenant_id AND o.id = :id AND o.status = 'FailedFinal';

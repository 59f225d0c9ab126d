-- name: set_gate
-- One update, whatever hangs on it: it waits for the claims that hold the row, and those that come after it see it. No
-- row is given where the gate stands so already.
INSERT INTO broadcast AS s (tenant_id, broadcast, gate)
SELECT $1, $2, $3
WHERE $3 <> 'Open' OR EXISTS (SELECT FROM broadcast AS found WHERE found.tenant_id = $1 AND found.broadcast = $2)
ON CONFLICT (tenant_id, broadcast) DO UPDATE SET gate = excluded.gate
WHERE s.gate <> excluded.gate
RETURNING s.broadcast;

-- name: lock_canceled_messages
-- Waiting rows that were called off, one by one or with their broadcast, at most so many of either; what somebody holds is
-- passed over, and found the next time. One that is found in both ways is one row.
SELECT DISTINCT ON (c.bucket, c.id) c.*
FROM (
  SELECT called_off.*
  FROM (
    SELECT
      found.tenant_id, found.bucket, found.id, found.status, found.version, found.flow_id, found.reason_class,
      found.order_key, found.attempts, found.cancel_actor, found.claim_token, found.account, found.correlation_id,
      found.traceparent, found.message_id, found.first_unknown_at IS NOT NULL AS may_have_arrived
    FROM outgoing_message AS found
    WHERE found.cancel_at IS NOT NULL AND found.due_at IS NOT NULL
    ORDER BY found.cancel_at
    LIMIT $1
    FOR UPDATE SKIP LOCKED
  ) AS called_off
  UNION ALL
  SELECT o.*
  FROM broadcast AS s
  CROSS JOIN LATERAL (
    SELECT found.id
    FROM flow AS found
    WHERE found.tenant_id = s.tenant_id AND found.broadcast = s.broadcast AND found.broadcast <> ''
  ) AS f
  CROSS JOIN LATERAL (
    SELECT
      found.tenant_id, found.bucket, found.id, found.status, found.version, found.flow_id, found.reason_class,
      found.order_key, found.attempts, found.cancel_actor, found.claim_token, found.account, found.correlation_id,
      found.traceparent, found.message_id, found.first_unknown_at IS NOT NULL AS may_have_arrived
    FROM outgoing_message AS found
    WHERE found.flow_id = f.id AND found.due_at IS NOT NULL
    ORDER BY found.due_at, found.id
    LIMIT $1
    FOR UPDATE SKIP LOCKED
  ) AS o
  WHERE s.gate = 'Canceled'
  LIMIT $1
) AS c
ORDER BY c.bucket, c.id
LIMIT $1;

-- name: cancel_schedulers
-- First of a cancel: it waits for the batches that hold the row while they insert, and none inserts after it. The rows
-- that those have made are seen by the next statement.
UPDATE notification_scheduler AS s
SET
  status = 'Canceled', due_at = NULL, lease_until = NULL, version = s.version + 1,
  reason = format('canceled by %s', $3::text), moved_at = now()
WHERE
  s.status = ANY ($4::text[]) AND s.id = ANY (ARRAY(
    SELECT f.id
    FROM (
      SELECT found.partition_key, found.row_key
      FROM notification_job AS found
      WHERE found.tenant_id = $1 AND found.guid = $2
      LIMIT 1
    ) AS j
    CROSS JOIN LATERAL (
      SELECT found.id
      FROM notification_scheduler AS found
      WHERE
        found.tenant_id = $1 AND found.artifact_type = 'NotificationJob' AND found.artifact_pk = j.partition_key
        AND found.artifact_rk = j.row_key
      OFFSET 0
    ) AS f
  ))
RETURNING s.id;

-- name: lock_messages_of_job
-- All that are not final and not called off yet, in the common order.
SELECT
  o.tenant_id, o.bucket, o.id, o.status, o.version, o.flow_id, o.reason_class, o.order_key, o.attempts,
  o.cancel_actor, o.claim_token, o.account, o.correlation_id, o.traceparent, o.message_id,
  o.first_unknown_at IS NOT NULL AS may_have_arrived
FROM (
  SELECT found.bucket, found.row_key
  FROM notification_job AS found
  WHERE found.tenant_id = $1 AND found.guid = $2
  LIMIT 1
) AS j
CROSS JOIN LATERAL (
  SELECT found.outgoing_id
  FROM outgoing_key AS found
  WHERE found.tenant_id = $1 AND found.bucket = j.bucket AND found.pk = j.row_key
  ORDER BY found.outgoing_id
) AS k
CROSS JOIN LATERAL (
  SELECT found.*
  FROM outgoing_message AS found
  WHERE
    found.bucket = j.bucket AND found.id = k.outgoing_id AND found.cancel_at IS NULL
    AND found.status <> ALL ($3::text[])
  LIMIT 1
  FOR UPDATE
) AS o;

-- name: call_off_messages
-- Of those that are in flight or uncertain: if they come back, the claim cancels them.
UPDATE outgoing_message AS o
SET cancel_at = now(), cancel_actor = $3
FROM unnest($1::integer[], $2::bigint[]) AS g (bucket, id)
WHERE o.bucket = g.bucket AND o.id = g.id;

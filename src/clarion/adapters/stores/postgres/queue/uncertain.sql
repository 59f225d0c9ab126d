-- name: lock_expired_messages
-- Claims whose lease ran out, oldest first; what somebody is just recording is passed over. When a row was claimed is
-- told by the line of its claim, which has the row's version: its call cannot have begun before.
SELECT
  e.tenant_id, e.bucket, e.id, e.status, e.version, e.flow_id, e.reason_class, e.order_key, e.attempts,
  e.cancel_actor, e.claim_token, e.account, e.correlation_id, e.traceparent, e.message_id,
  e.first_unknown_at IS NOT NULL AS may_have_arrived,
  (
    SELECT t.at FROM transition AS t WHERE t.bucket = e.bucket AND t.outgoing_id = e.id AND t.version = e.version
  ) AS claimed_at
FROM (
  SELECT found.*
  FROM outgoing_message AS found
  WHERE found.lease_until <= now()
  ORDER BY found.lease_until
  LIMIT $1
  FOR UPDATE SKIP LOCKED
) AS e;

-- name: insert_unknown_attempts
-- The attempts of claims that nobody will report about any more.
INSERT INTO delivery_attempt (
  tenant_id, bucket, outgoing_id, attempt, claim_token, account, status, correlation_id, traceparent
)
SELECT g.tenant_id, g.bucket, g.id, g.attempt, g.token, g.account, 'Unknown', g.correlation_id, g.traceparent
FROM unnest(
  $1::text[], $2::integer[], $3::bigint[], $4::smallint[], $5::uuid[], $6::text[], $7::text[], $8::text[]
) AS g (tenant_id, bucket, id, attempt, token, account, correlation_id, traceparent)
ORDER BY g.bucket, g.id
ON CONFLICT DO NOTHING;

-- name: find_uncertain
-- Without a lock: whoever decides writes by version. By the store's clock, which the window of a provider that
-- de-duplicates is judged by too.
SELECT
  o.id, o.bucket, o.tenant_id, o.version, o.account, o.message_id, o.channel, o.attempts, o.uncertain_policy, o.replays,
  (
    SELECT count(*)
    FROM delivery_attempt AS d
    WHERE d.bucket = o.bucket AND d.outgoing_id = o.id AND d.status = 'Unknown' AND d.latency_ms IS NOT NULL
  ) AS unanswered,
  now() - coalesce(o.first_unknown_at, o.settle_at) AS unknown_for,
  o.cancel_at IS NOT NULL OR coalesce(o.expires_at <= now(), false) AS is_over
FROM outgoing_message AS o
WHERE o.settle_at <= now() AND o.account = ANY ($1::text[])
ORDER BY o.settle_at, o.id
LIMIT $2;

-- name: lock_uncertain
-- In the common order; one that has moved on since it was read, or was decided about, is not returned.
SELECT o.*, g.place
FROM unnest($1::integer[], $2::bigint[], $3::integer[]) WITH ORDINALITY AS g (bucket, id, version, place)
CROSS JOIN LATERAL (
  SELECT
    found.tenant_id, found.bucket, found.id, found.status, found.version, found.flow_id, found.reason_class,
    found.order_key, found.attempts, found.cancel_actor, found.claim_token, found.account, found.correlation_id,
    found.traceparent, found.message_id, found.first_unknown_at IS NOT NULL AS may_have_arrived
  FROM outgoing_message AS found
  WHERE
    found.bucket = g.bucket AND found.id = g.id AND found.version = g.version AND found.status = 'Uncertain'
    AND found.settle_at IS NOT NULL
  LIMIT 1
  FOR UPDATE
) AS o;

-- name: lock_failed_message
-- A person names a row by its id alone, so it is found among the few of its tenant that can be tried again; by version,
-- so that a double click is one retry.
SELECT
  o.tenant_id, o.bucket, o.id, o.status, o.version, o.flow_id, o.reason_class, o.order_key, o.attempts,
  o.cancel_actor, o.claim_token, o.account, o.correlation_id, o.traceparent, o.message_id,
  o.first_unknown_at IS NOT NULL AS may_have_arrived
FROM (
  SELECT found.bucket, found.id
  FROM outgoing_message AS found
  WHERE found.tenant_id = $1 AND found.id = $2 AND found.status = 'Uncertain'
  UNION ALL
  SELECT found.bucket, found.id
  FROM outgoing_message AS found
  WHERE found.tenant_id = $1 AND found.id = $2 AND found.status = 'FailedFinal'
) AS g
CROSS JOIN LATERAL (
  SELECT found.*
  FROM outgoing_message AS found
  WHERE
    found.bucket = g.bucket AND found.id = g.id AND found.version = $3 AND found.cancel_at IS NULL
    AND coalesce(found.expires_at > now(), true) AND found.status IN ('Uncertain', 'FailedFinal')
  LIMIT 1
  FOR UPDATE
) AS o;

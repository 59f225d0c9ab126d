-- name: insert_events
-- Each once by account and event id. A microsecond apart, so that events that came together keep their order.
INSERT INTO webhook_event (
  tenant_id, account, event_id, status, message_id, recipient_key_hash, provider_message_id, happened_at, raw,
  received_at, look_at
)
SELECT
  $1, g.account, g.event_id, g.status, g.message_id, g.recipient_key_hash, g.provider_message_id, g.happened_at, g.raw,
  now() + (g.place - 1) * interval '1 microsecond', now() + (g.place - 1) * interval '1 microsecond'
FROM unnest(
  $2::text[], $3::text[], $4::text[], $5::uuid[], $6::text[], $7::text[], $8::timestamptz[], $9::text[]
) WITH ORDINALITY AS g (
  account, event_id, status, message_id, recipient_key_hash, provider_message_id, happened_at, raw, place
)
ORDER BY g.account, g.event_id
ON CONFLICT DO NOTHING
RETURNING event_id;

-- name: lock_events
-- A page of waiting events, in the order in which they want to be looked at, and for each the row that it is about, if
-- that was called already: by our own key, or by the provider's id of one of its attempts. Two who apply at once take
-- different events.
SELECT
  e.tenant_id, e.account, e.event_id, e.status, e.provider_message_id, e.look_at, e.received_at, o.bucket, o.id
FROM (
  SELECT found.*
  FROM webhook_event AS found
  WHERE
    found.applied_at IS NULL AND found.look_at <= now()
    AND (found.look_at, found.received_at) > (coalesce($2::timestamptz, '-infinity'), coalesce($3::timestamptz, '-infinity'))
  ORDER BY found.look_at, found.received_at
  LIMIT $1
  FOR UPDATE SKIP LOCKED
) AS e
LEFT JOIN LATERAL (
  SELECT c.bucket, c.id
  FROM (
    SELECT found.bucket, found.outgoing_id AS id
    FROM outgoing_key AS found
    WHERE
      found.tenant_id = e.tenant_id AND found.message_id = e.message_id AND left(found.rk, 32) = e.recipient_key_hash
    UNION ALL
    SELECT d.bucket, d.outgoing_id
    FROM delivery_attempt AS d
    WHERE
      d.tenant_id = e.tenant_id AND d.account = e.account AND d.provider_message_id = e.provider_message_id
      AND d.provider_message_id IS NOT NULL
  ) AS c
  ORDER BY c.id
  LIMIT 1
) AS o ON true
ORDER BY e.look_at, e.received_at;

-- name: lock_tracked_messages
-- In the common order, each in its latest version: what a result or a claim is just writing is waited for.
SELECT o.*
FROM unnest($1::integer[], $2::bigint[]) AS g (bucket, id)
CROSS JOIN LATERAL (
  SELECT
    found.tenant_id, found.bucket, found.id, found.status, found.version, found.flow_id, found.reason_class,
    found.order_key, found.attempts, found.cancel_actor, found.claim_token, found.account, found.correlation_id,
    found.traceparent, found.message_id, found.first_unknown_at IS NOT NULL AS may_have_arrived, found.provider_message_id
  FROM outgoing_message AS found
  WHERE found.bucket = g.bucket AND found.id = g.id
  LIMIT 1
  FOR UPDATE
) AS o;

-- name: read_attempts
-- A statement after the lock, whose snapshot holds what a record that was waited for has written.
SELECT d.bucket, d.outgoing_id, d.attempt, d.status, d.provider_message_id
FROM unnest($1::integer[], $2::bigint[]) AS g (bucket, id)
CROSS JOIN LATERAL (
  SELECT found.bucket, found.outgoing_id, found.attempt, found.status, found.provider_message_id
  FROM delivery_attempt AS found
  WHERE found.bucket = g.bucket AND found.outgoing_id = g.id
  OFFSET 0
) AS d
ORDER BY d.bucket, d.outgoing_id, d.attempt;

-- name: settle_attempts
-- What stood as unknown was accepted; an attempt that is still being made is written here first, and its own result
-- will add to it.
INSERT INTO delivery_attempt AS d (
  tenant_id, bucket, outgoing_id, attempt, claim_token, account, status, provider_message_id, correlation_id,
  traceparent
)
SELECT
  g.tenant_id, g.bucket, g.id, g.attempt, g.token, g.account, 'Accepted', g.provider_message_id, g.correlation_id,
  g.traceparent
FROM unnest(
  $1::text[], $2::integer[], $3::bigint[], $4::smallint[], $5::uuid[], $6::text[], $7::text[], $8::text[], $9::text[]
) AS g (tenant_id, bucket, id, attempt, token, account, provider_message_id, correlation_id, traceparent)
ORDER BY g.bucket, g.id, g.attempt
ON CONFLICT (bucket, outgoing_id, attempt) DO UPDATE
SET status = 'Accepted', provider_message_id = coalesce(d.provider_message_id, excluded.provider_message_id)
WHERE d.status = 'Unknown';

-- name: note_provider_ids
-- Of rows that an event tells the provider's id of and does not lift.
UPDATE outgoing_message AS o
SET provider_message_id = g.provider_message_id
FROM unnest($1::integer[], $2::bigint[], $3::text[]) AS g (bucket, id, provider_message_id)
WHERE o.bucket = g.bucket AND o.id = g.id AND o.provider_message_id IS NULL;

-- name: mark_events
-- Applied ones are done. One whose row is not known yet goes to the end of the line: while it is young its row may come
-- at any moment, after that it is looked at ever more rarely.
UPDATE webhook_event AS e
SET
  applied_at = CASE WHEN g.applied THEN now() END,
  look_at = CASE
    WHEN g.applied THEN e.look_at
    WHEN e.received_at > now() - $5::interval THEN now()
    ELSE now() + least(now() - e.received_at, $6::interval)
  END
FROM unnest($1::text[], $2::text[], $3::text[], $4::boolean[]) AS g (tenant_id, account, event_id, applied)
WHERE e.tenant_id = g.tenant_id AND e.account = g.account AND e.event_id = g.event_id;

-- name: read_job
-- The job by its guid, and when it was stored.
SELECT
  id, partition_key, row_key, guid, message_id, event_type, operation, source_type, source, automation_key, run_key,
  template_key,
  asked_template_version, template_version, payload_hash, payload, recipients, source_at, bucket, key_version, actor,
  correlation_id, traceparent, created_at
FROM notification_job
WHERE tenant_id = $1 AND guid = $2;

-- name: read_scheduler_of_job
-- The pending row of a job, found by the dispatch guard's index.
SELECT
  id, artifact_type, artifact_pk, artifact_rk, event_type, lane, stage, status, version, due_at, lease_until,
  retry_count, rescue_count, reason, diagnostics, correlation_id, traceparent, created_at, scheduled_at, moved_at
FROM notification_scheduler
WHERE tenant_id = $1 AND artifact_type = 'NotificationJob' AND artifact_pk = $2 AND artifact_rk = $3
ORDER BY id
LIMIT 1;

-- name: read_inbox_of_job
-- All inbox rows that a job made.
SELECT
  id, bucket, partition_key, row_key, message_id, recipient_id_hash, job_row_key, event_type, content, correlation_id,
  traceparent, created_at
FROM user_message
WHERE tenant_id = $1 AND job_row_key = $2
ORDER BY id;

-- name: read_messages_of_job
-- All outgoing rows of a job: one part of the index of their keys.
SELECT o.*
FROM (
  SELECT found.outgoing_id
  FROM outgoing_key AS found
  WHERE found.tenant_id = $1 AND found.bucket = $2 AND found.pk = $3
  OFFSET 0
) AS k
CROSS JOIN LATERAL (
  SELECT
    found.id, found.bucket, found.pk, found.rk, found.message_id, found.channel, found.status, found.version,
    found.attempts, found.reason, found.account, found.provider_message_id, found.due_at, found.cancel_at,
    found.cancel_actor, found.created_at
  FROM outgoing_message AS found
  WHERE found.bucket = $2 AND found.id = k.outgoing_id
  LIMIT 1
) AS o
ORDER BY o.id;

-- name: read_transitions
-- The lines of these rows, each row's in their order.
SELECT t.*
FROM unnest($1::integer[], $2::bigint[]) AS g (bucket, id)
CROSS JOIN LATERAL (
  SELECT found.outgoing_id, found.version, found.from_status, found.to_status, found.at, found.actor, found.reason
  FROM transition AS found
  WHERE found.bucket = g.bucket AND found.outgoing_id = g.id
  OFFSET 0
) AS t
ORDER BY t.outgoing_id, t.version;

-- name: read_tries
-- The calls of these rows, each row's in their order.
SELECT d.*
FROM unnest($1::integer[], $2::bigint[]) AS g (bucket, id)
CROSS JOIN LATERAL (
  SELECT
    found.outgoing_id, found.attempt, found.account, found.status, found.provider_message_id, found.reason,
    found.latency_ms, found.at
  FROM delivery_attempt AS found
  WHERE found.bucket = g.bucket AND found.outgoing_id = g.id
  OFFSET 0
) AS d
ORDER BY d.outgoing_id, d.attempt;

-- name: read_events_of_messages
-- What providers reported about these rows, by our key or by the id that they gave to one of the calls; applied or not.
SELECT DISTINCT ON (e.received_at, e.account, e.event_id, e.outgoing_id) e.*
FROM (
  SELECT g.id AS outgoing_id, w.account, w.event_id, w.status, w.happened_at, w.received_at, w.applied_at
  FROM unnest($2::bigint[], $3::uuid[], $4::text[]) AS g (id, message_id, key_hash)
  CROSS JOIN LATERAL (
    SELECT found.*
    FROM webhook_event AS found
    WHERE
      found.tenant_id = $1 AND found.message_id = g.message_id AND found.message_id IS NOT NULL
      AND found.recipient_key_hash = g.key_hash
    OFFSET 0
  ) AS w
  UNION ALL
  SELECT g.id, w.account, w.event_id, w.status, w.happened_at, w.received_at, w.applied_at
  FROM unnest($5::bigint[], $6::text[], $7::text[]) AS g (id, account, provider_message_id)
  CROSS JOIN LATERAL (
    SELECT found.*
    FROM webhook_event AS found
    WHERE
      found.tenant_id = $1 AND found.account = g.account AND found.provider_message_id = g.provider_message_id
      AND found.provider_message_id IS NOT NULL
    OFFSET 0
  ) AS w
) AS e
ORDER BY e.received_at, e.account, e.event_id, e.outgoing_id;

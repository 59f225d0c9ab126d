-- name: insert_idempotency_guards
-- First of all that a job needs, so that the unique key decides a race before either caller has made anything: whoever
-- comes second waits here and then reads the winner's coordinates. The look-up spares a repeat every write.
INSERT INTO idempotency_guard (
  tenant_id, created_at, operation, key_hash, payload_hash, job_partition_key, job_row_key, source_at, retired_at
)
SELECT :tenant_id, now(), g.*
FROM {
  guards: operation text, key_hash text, payload_hash text, job_partition_key text, job_row_key text,
  source_at instant, retired_at instant
} AS g
WHERE (
  SELECT i.key_hash
  FROM idempotency_guard AS i
  WHERE i.tenant_id = :tenant_id AND i.operation = g.operation AND i.key_hash = g.key_hash
) IS NULL
ORDER BY g.operation, g.key_hash
ON CONFLICT DO NOTHING
RETURNING operation, key_hash;

-- name: read_idempotency_guards
-- A statement of its own: its snapshot holds the guard that the insert waited for.
SELECT i.*
FROM {keys: operation text, key_hash text} AS g
JOIN idempotency_guard AS i ON i.tenant_id = :tenant_id AND i.operation = g.operation AND i.key_hash = g.key_hash;

-- name: delete_idempotency_guards
-- Takes back guards that this transaction has just made for jobs that turned out to be in conflict: the key was not
-- used.
DELETE FROM idempotency_guard
WHERE tenant_id = :tenant_id AND operation = :operation AND key_hash IN {key_hashes: text};

-- name: insert_notification_jobs
-- The look-up by row key (unique per tenant by itself), the order and ON CONFLICT as in every insert of an ensure.
INSERT INTO notification_job (
  tenant_id, created_at, partition_key, row_key, guid, message_id, event_type, operation, source_type, source,
  automation_key, run_key, template_key, asked_template_version, template_version, payload_hash, payload,
  one_time_code, recipients, business_unit, messaging_job, source_at, bucket, key_version, actor, correlation_id,
  traceparent
)
SELECT :tenant_id, now(), g.*
FROM {
  items: partition_key text, row_key text, guid guid, message_id guid, event_type text, operation text,
  source_type text, source text, automation_key text, run_key text, template_key text, asked_template_version whole,
  template_version whole, payload_hash text, payload bytes, one_time_code truth, recipients text,
  business_unit guid, messaging_job text, source_at instant, bucket whole, key_version whole, actor text,
  correlation_id text, traceparent text
} AS g
WHERE (SELECT j.id FROM notification_job AS j WHERE j.tenant_id = :tenant_id AND j.row_key = g.row_key) IS NULL
ORDER BY g.row_key
ON CONFLICT DO NOTHING
RETURNING id, row_key;

-- name: read_notification_jobs
-- Whoever made them.
SELECT j.*
FROM {items: row_key text} AS g
JOIN notification_job AS j ON j.tenant_id = :tenant_id AND j.row_key = g.row_key;

-- name: insert_notification_schedulers
-- A row that is there, in whatever state, is never made again. A row that does not say when it is due is due now, by the
-- store's clock. Ids are given in the order asked, because rows that are due together are claimed in the order of their
-- ids; the rows are inserted in the order of their keys, so that two callers cannot deadlock.
INSERT INTO notification_scheduler (
  id, tenant_id, created_at, artifact_type, artifact_pk, artifact_rk, event_type, lane, stage, status, version, due_at,
  lease_until, retry_count, rescue_count, reason, rule, diagnostics, cursor, correlation_id, traceparent
)
OVERRIDING SYSTEM VALUE
SELECT
  n.id, :tenant_id, now(), n.artifact_type, n.artifact_pk, n.artifact_rk, n.event_type, n.lane, n.stage, n.status,
  n.version, coalesce(n.due_at, now()), n.lease_until, n.retry_count, n.rescue_count, n.reason, n.rule, n.diagnostics,
  n.cursor, n.correlation_id, n.traceparent
FROM (
  SELECT next_id(notification_scheduler) AS id, g.*
  FROM {
    items: artifact_type text, artifact_pk text, artifact_rk text, event_type text, lane text, stage text, status text,
    version whole, due_at instant, lease_until instant, retry_count whole, rescue_count whole, reason text,
    rule text, diagnostics text, cursor text, correlation_id text, traceparent text
  } AS g
  WHERE (
    SELECT s.id
    FROM notification_scheduler AS s
    WHERE
      s.tenant_id = :tenant_id AND s.artifact_type = g.artifact_type AND s.artifact_pk = g.artifact_pk
      AND s.artifact_rk = g.artifact_rk AND s.event_type = g.event_type
  ) IS NULL
) AS n
WHERE true
ORDER BY n.artifact_type, n.artifact_pk, n.artifact_rk, n.event_type
ON CONFLICT DO NOTHING
RETURNING id;

-- name: read_notification_schedulers
-- Whoever made them.
SELECT s.*
FROM {items: artifact_type text, artifact_pk text, artifact_rk text, event_type text} AS g
JOIN notification_scheduler AS s
  ON
    s.tenant_id = :tenant_id AND s.artifact_type = g.artifact_type AND s.artifact_pk = g.artifact_pk
    AND s.artifact_rk = g.artifact_rk AND s.event_type = g.event_type;

-- name: read_artifacts
-- The jobs that scheduler rows may be made for. Those of a messaging job have its guid as both of their keys.
SELECT 'NotificationJob' AS artifact_type, j.partition_key AS artifact_pk, j.row_key AS artifact_rk
FROM {notification_jobs: partition_key text, row_key text} AS g
JOIN notification_job AS j
  ON j.tenant_id = :tenant_id AND j.row_key = g.row_key AND j.partition_key = g.partition_key
UNION ALL
SELECT 'MessagingJob', CAST(m.guid AS text), CAST(m.guid AS text)
FROM {messaging_jobs: guid guid} AS g
JOIN messaging_job AS m ON m.tenant_id = :tenant_id AND m.guid = g.guid;

-- name: insert_new_jobs
-- Nearly all sets of jobs are new as a whole: these are stored by this one statement, which is a transaction by itself.
-- Where a guard is there already nothing is written, and where another transaction has made a key since we looked it is
-- a violation; either way the caller goes the general way with the whole set. So nothing here needs ON CONFLICT. Guards
-- come first and in the order of their keys, and jobs wait for them, so that two callers cannot deadlock. Scheduler rows
-- get their ids in the order asked, as everywhere.
WITH given AS MATERIALIZED (
  SELECT g.*
  FROM {
    items: partition_key text, row_key text, guid guid, message_id guid, event_type text, operation text,
    source_type text, source text, automation_key text, run_key text, template_key text, asked_template_version whole,
    template_version whole, payload_hash text, payload bytes, one_time_code truth, recipients text,
    business_unit guid, messaging_job text, source_at instant, bucket whole, key_version whole, actor text,
    correlation_id text, traceparent text, key_hash text, lane text, due_at instant
  } AS g
), known AS MATERIALIZED (
  SELECT count(*) AS n
  FROM given AS g
  WHERE (
    SELECT i.key_hash
    FROM idempotency_guard AS i
    WHERE i.tenant_id = :tenant_id AND i.operation = g.operation AND i.key_hash = g.key_hash
  ) IS NOT NULL
), guards AS (
  INSERT INTO idempotency_guard (
    tenant_id, operation, key_hash, payload_hash, job_partition_key, job_row_key, source_at
  )
  SELECT :tenant_id, g.operation, g.key_hash, g.payload_hash, g.partition_key, g.row_key, g.source_at
  FROM given AS g
  WHERE g.key_hash IS NOT NULL AND (SELECT n FROM known) = 0
  ORDER BY g.operation, g.key_hash
  RETURNING key_hash
), jobs AS (
  INSERT INTO notification_job (
    tenant_id, partition_key, row_key, guid, message_id, event_type, operation, source_type, source, automation_key,
    run_key, template_key, asked_template_version, template_version, payload_hash, payload, one_time_code, recipients,
    business_unit, messaging_job, source_at, bucket, key_version, actor, correlation_id, traceparent
  )
  SELECT
    :tenant_id, g.partition_key, g.row_key, g.guid, g.message_id, g.event_type, g.operation, g.source_type, g.source,
    g.automation_key, g.run_key, g.template_key, g.asked_template_version, g.template_version, g.payload_hash,
    g.payload, g.one_time_code, g.recipients, g.business_unit, g.messaging_job, g.source_at, g.bucket, g.key_version,
    g.actor, g.correlation_id, g.traceparent
  FROM given AS g
  WHERE (SELECT n FROM known) = 0 AND (SELECT count(*) FROM guards) >= 0  -- once all guards are there
  ORDER BY g.row_key
  RETURNING id, row_key
), pending AS (
  INSERT INTO notification_scheduler (
    id, tenant_id, artifact_type, artifact_pk, artifact_rk, event_type, lane, stage, status, due_at, correlation_id,
    traceparent
  )
  OVERRIDING SYSTEM VALUE
  SELECT
    s.id, :tenant_id, 'NotificationJob', s.partition_key, s.row_key, s.event_type, s.lane, :stage, 'Ready',
    coalesce(s.due_at, now()), s.correlation_id, s.traceparent
  FROM (
    SELECT next_id(notification_scheduler) AS id, g.*
    FROM given AS g
    WHERE (SELECT count(*) FROM jobs) > 0
  ) AS s
  ORDER BY s.partition_key, s.row_key, s.event_type
)
SELECT id, row_key FROM jobs;

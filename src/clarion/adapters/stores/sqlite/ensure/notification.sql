-- name: read_idempotency_guards
-- Before anything of a job is made: a key that was used decides where its job lies. Nobody else can write before this
-- transaction ends, so a guard that is not there now is ours to make.
SELECT i.operation, i.key_hash, i.payload_hash, i.job_partition_key, i.job_row_key, i.source_at, i.retired_at
FROM json_each(:items) AS g
CROSS JOIN idempotency_guard AS i
  ON
    i.tenant_id = :tenant_id AND i.operation = g.value ->> 'operation' AND i.key_hash = g.value ->> 'key_hash';

-- name: insert_idempotency_guards
-- After the jobs, for those that proceed: a key whose job is in conflict was not used. The look-up spares a repeat
-- every write.
INSERT INTO idempotency_guard (
  tenant_id, operation, key_hash, payload_hash, job_partition_key, job_row_key, source_at, retired_at, created_at
)
SELECT
  :tenant_id, g.value ->> 'operation', g.value ->> 'key_hash', g.value ->> 'payload_hash',
  g.value ->> 'job_partition_key', g.value ->> 'job_row_key', g.value ->> 'source_at', g.value ->> 'retired_at',
  clarion_now()
FROM json_each(:items) AS g
WHERE NOT EXISTS (
  SELECT 1
  FROM idempotency_guard AS i
  WHERE i.tenant_id = :tenant_id AND i.operation = g.value ->> 'operation' AND i.key_hash = g.value ->> 'key_hash'
)
ORDER BY g.value ->> 'operation', g.value ->> 'key_hash', g.key
ON CONFLICT (tenant_id, operation, key_hash) DO NOTHING;

-- name: insert_notification_jobs
-- The look-up by row key (unique per tenant by itself), the order and ON CONFLICT as in every insert of an ensure. The
-- conflict target leaves the guid out: one guid under two row keys is a defect and must not pass in silence.
INSERT INTO notification_job (
  tenant_id, partition_key, row_key, guid, message_id, event_type, operation, source_type, source, automation_key, run_key,
  template_key, asked_template_version, template_version, payload_hash, payload, recipients, source_at, bucket,
  key_version, actor, correlation_id, traceparent, created_at
)
SELECT
  :tenant_id, g.value ->> 'partition_key', g.value ->> 'row_key', g.value ->> 'guid', g.value ->> 'message_id',
  g.value ->> 'event_type', g.value ->> 'operation', g.value ->> 'source_type', g.value ->> 'source', g.value ->> 'automation_key',
  g.value ->> 'run_key', g.value ->> 'template_key', g.value ->> 'asked_template_version',
  g.value ->> 'template_version', g.value ->> 'payload_hash', clarion_bytes(g.value ->> 'payload'),
  g.value ->> 'recipients', g.value ->> 'source_at', g.value ->> 'bucket', g.value ->> 'key_version',
  g.value ->> 'actor', g.value ->> 'correlation_id', g.value ->> 'traceparent', clarion_now()
FROM json_each(:items) AS g
WHERE NOT EXISTS (
  SELECT 1 FROM notification_job AS j WHERE j.tenant_id = :tenant_id AND j.row_key = g.value ->> 'row_key'
)
ORDER BY g.value ->> 'row_key', g.key
ON CONFLICT (tenant_id, row_key) DO NOTHING
RETURNING id;

-- name: read_notification_jobs
-- In this order, by CROSS JOIN, so that each row is looked up.
SELECT
  j.id, j.partition_key, j.row_key, j.guid, j.message_id, j.event_type, j.operation, j.source_type, j.source,
  j.automation_key, j.run_key, j.template_key, j.asked_template_version, j.template_version, j.payload_hash, j.payload, j.recipients,
  j.source_at, j.bucket, j.key_version, j.actor, j.correlation_id, j.traceparent
FROM json_each(:items) AS g
CROSS JOIN notification_job AS j ON j.tenant_id = :tenant_id AND j.row_key = g.value ->> 'row_key';

-- name: insert_notification_schedulers
-- The key is the dispatch key: a row that is there, in whatever state, is never made again. A row that does not say
-- when it is due is due now, by the store's clock.
INSERT INTO notification_scheduler (
  tenant_id, artifact_type, artifact_pk, artifact_rk, event_type, lane, stage, status, version, due_at, lease_until,
  retry_count, rescue_count, reason, diagnostics, correlation_id, traceparent, created_at
)
SELECT
  :tenant_id, g.value ->> 'artifact_type', g.value ->> 'artifact_pk', g.value ->> 'artifact_rk',
  g.value ->> 'event_type', g.value ->> 'lane', g.value ->> 'stage', g.value ->> 'status', g.value ->> 'version',
  coalesce(g.value ->> 'due_at', clarion_now()), g.value ->> 'lease_until', g.value ->> 'retry_count',
  g.value ->> 'rescue_count', g.value ->> 'reason', g.value ->> 'diagnostics', g.value ->> 'correlation_id',
  g.value ->> 'traceparent', clarion_now()
FROM json_each(:items) AS g
WHERE NOT EXISTS (
  SELECT 1
  FROM notification_scheduler AS s
  WHERE
    s.tenant_id = :tenant_id AND s.artifact_type = g.value ->> 'artifact_type'
    AND s.artifact_pk = g.value ->> 'artifact_pk' AND s.artifact_rk = g.value ->> 'artifact_rk'
    AND s.event_type = g.value ->> 'event_type'
)
ORDER BY
  g.value ->> 'artifact_type', g.value ->> 'artifact_pk', g.value ->> 'artifact_rk', g.value ->> 'event_type', g.key
ON CONFLICT (tenant_id, artifact_type, artifact_pk, artifact_rk, event_type) DO NOTHING
RETURNING id;

-- name: read_notification_schedulers
-- In this order, by CROSS JOIN, so that each row is looked up.
SELECT
  s.id, s.artifact_type, s.artifact_pk, s.artifact_rk, s.event_type, s.lane, s.stage, s.status, s.version, s.due_at,
  s.lease_until, s.retry_count, s.rescue_count, s.reason, s.diagnostics, s.correlation_id, s.traceparent
FROM json_each(:items) AS g
CROSS JOIN notification_scheduler AS s
  ON
    s.tenant_id = :tenant_id AND s.artifact_type = g.value ->> 'artifact_type'
    AND s.artifact_pk = g.value ->> 'artifact_pk' AND s.artifact_rk = g.value ->> 'artifact_rk'
    AND s.event_type = g.value ->> 'event_type';

-- name: insert_automation_schedulers
-- The look-up comes first, so that a repeat writes nothing. Sorted by key and then by place in the set: of two items
-- with one key the first makes the row and the second finds it.
INSERT INTO automation_scheduler (
  tenant_id, scheduler_key, automation_type, trigger_type, setting, source_type, source, trigger_key, target_date,
  offset_days, metric, threshold_value, firing_policy, scope, business_unit, primary_entity, notification_type,
  input_hash, scheduled_at, local_date, local_time, tz_id, tzdata_version, status, version, lease_until, retry_count,
  next_retry_at, failure_reason, on_support_hold, canceled_by, dispatch_result, trace_blob, key_version,
  correlation_id, traceparent, created_at
)
SELECT
  :tenant_id, g.value ->> 'scheduler_key', g.value ->> 'automation_type', g.value ->> 'trigger_type',
  g.value ->> 'setting', g.value ->> 'source_type', g.value ->> 'source', g.value ->> 'trigger_key',
  g.value ->> 'target_date', g.value ->> 'offset_days', g.value ->> 'metric', g.value ->> 'threshold_value',
  g.value ->> 'firing_policy', g.value ->> 'scope', g.value ->> 'business_unit', g.value ->> 'primary_entity',
  g.value ->> 'notification_type', g.value ->> 'input_hash', g.value ->> 'scheduled_at', g.value ->> 'local_date',
  g.value ->> 'local_time', g.value ->> 'tz_id', g.value ->> 'tzdata_version', g.value ->> 'status',
  g.value ->> 'version', g.value ->> 'lease_until', g.value ->> 'retry_count', g.value ->> 'next_retry_at',
  g.value ->> 'failure_reason', g.value ->> 'on_support_hold', g.value ->> 'canceled_by',
  g.value ->> 'dispatch_result', g.value ->> 'trace_blob', g.value ->> 'key_version', g.value ->> 'correlation_id',
  g.value ->> 'traceparent', clarion_now()
FROM json_each(:items) AS g
WHERE NOT EXISTS (
  SELECT 1
  FROM automation_scheduler AS s
  WHERE s.tenant_id = :tenant_id AND s.scheduler_key = g.value ->> 'scheduler_key'
)
ORDER BY g.value ->> 'scheduler_key', g.key
ON CONFLICT (tenant_id, scheduler_key) DO NOTHING
RETURNING id;

-- name: read_automation_schedulers
-- CROSS JOIN is SQLite's word for this order: go through the set and look each row up, never the other way round.
SELECT
  s.id, s.scheduler_key, s.automation_type, s.trigger_type, s.setting, s.source_type, s.source, s.trigger_key,
  s.target_date, s.offset_days, s.metric, s.threshold_value, s.firing_policy, s.scope, s.business_unit,
  s.primary_entity, s.notification_type, s.input_hash, s.scheduled_at, s.local_date, s.local_time, s.tz_id,
  s.tzdata_version, s.status, s.version, s.lease_until, s.retry_count, s.next_retry_at, s.failure_reason,
  s.on_support_hold, s.canceled_by, s.dispatch_result, s.trace_blob, s.key_version, s.correlation_id, s.traceparent
FROM json_each(:items) AS g
CROSS JOIN automation_scheduler AS s
  ON s.tenant_id = :tenant_id AND s.scheduler_key = g.value ->> 'scheduler_key';

-- name: move_automation_schedulers
-- Reactivates a row or gives it a new send time. Nobody else can have written between our read and this. The sign `+`
-- keeps the planner from going through all rows of the tenant instead of looking each up by its id.
UPDATE automation_scheduler AS s
SET
  version = g.value ->> 'version',
  status = g.value ->> 'status',
  canceled_by = g.value ->> 'canceled_by',
  next_retry_at = g.value ->> 'next_retry_at',
  scheduled_at = g.value ->> 'scheduled_at',
  local_date = g.value ->> 'local_date',
  local_time = g.value ->> 'local_time',
  tz_id = g.value ->> 'tz_id',
  tzdata_version = g.value ->> 'tzdata_version'
FROM json_each(:items) AS g
WHERE s.id = g.value ->> 'id' AND +s.tenant_id = :tenant_id;

-- name: insert_automation_jobs
-- The look-up, the order and ON CONFLICT as in insert_automation_schedulers, and for the same reasons.
INSERT INTO automation_job (
  tenant_id, partition_key, row_key, automation_type, notification_type, input_hash, key_version, correlation_id,
  traceparent, created_at
)
SELECT
  :tenant_id, g.value ->> 'partition_key', g.value ->> 'row_key', g.value ->> 'automation_type',
  g.value ->> 'notification_type', g.value ->> 'input_hash', g.value ->> 'key_version', g.value ->> 'correlation_id',
  g.value ->> 'traceparent', clarion_now()
FROM json_each(:items) AS g
WHERE NOT EXISTS (
  SELECT 1
  FROM automation_job AS j
  WHERE
    j.tenant_id = :tenant_id AND j.partition_key = g.value ->> 'partition_key' AND j.row_key = g.value ->> 'row_key'
)
ORDER BY g.value ->> 'partition_key', g.value ->> 'row_key', g.key
ON CONFLICT (tenant_id, partition_key, row_key) DO NOTHING
RETURNING id;

-- name: read_automation_jobs
-- In this order, by CROSS JOIN, so that each row is looked up.
SELECT
  j.id, j.partition_key, j.row_key, j.automation_type, j.notification_type, j.input_hash, j.key_version,
  j.correlation_id, j.traceparent
FROM json_each(:items) AS g
CROSS JOIN automation_job AS j
  ON
    j.tenant_id = :tenant_id AND j.partition_key = g.value ->> 'partition_key' AND j.row_key = g.value ->> 'row_key';

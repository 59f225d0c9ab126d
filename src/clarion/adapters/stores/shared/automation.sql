-- name: insert_automation_schedulers
-- The look-up comes first, so that a repeat writes nothing and takes no number of the sequence. ON CONFLICT decides a
-- race. Sorted by key, so that two callers cannot deadlock.
INSERT INTO automation_scheduler (
  tenant_id, created_at, scheduler_key, automation_type, trigger_type, setting, source_type, source, trigger_key,
  target_date, offset_days, metric, threshold_value, firing_policy, scope, business_unit, primary_entity,
  notification_type, input_hash, scheduled_at, local_date, local_time, tz_id, tzdata_version, status, version,
  lease_until, retry_count, next_retry_at, failure_reason, on_support_hold, canceled_by, dispatch_result, trace_blob,
  key_version, correlation_id, traceparent
)
SELECT :tenant_id, now(), g.*
FROM {
  items: scheduler_key text, automation_type text, trigger_type text, setting text, source_type text, source text,
  trigger_key text, target_date date, offset_days whole, metric text, threshold_value text, firing_policy text,
  scope text, business_unit text, primary_entity text, notification_type text, input_hash text, scheduled_at instant,
  local_date date, local_time text, tz_id text, tzdata_version text, status text, version whole, lease_until instant,
  retry_count whole, next_retry_at instant, failure_reason text, on_support_hold truth, canceled_by text,
  dispatch_result text, trace_blob text, key_version whole, correlation_id text, traceparent text
} AS g
WHERE (
  SELECT s.id FROM automation_scheduler AS s WHERE s.tenant_id = :tenant_id AND s.scheduler_key = g.scheduler_key
) IS NULL
ORDER BY g.scheduler_key
ON CONFLICT DO NOTHING
RETURNING id;

-- name: read_automation_schedulers
-- Whoever made them.
SELECT s.*
FROM {items: scheduler_key text} AS g
JOIN automation_scheduler AS s ON s.tenant_id = :tenant_id AND s.scheduler_key = g.scheduler_key;

-- name: lock_automation_schedulers
-- One by one in the order given, which is that of the key, as the inserts are.
SELECT s.scheduler_key, s.version
FROM {rows: scheduler_key text} AS g
JOIN automation_scheduler AS s ON s.tenant_id = :tenant_id AND s.scheduler_key = g.scheduler_key
FOR UPDATE OF s;

-- name: move_automation_schedulers
-- Reactivates rows, gives them a new send time, or holds back what is contradicted. They are locked, and at the version
-- that was read.
UPDATE automation_scheduler AS s
SET
  version = g.version,
  status = g.status,
  canceled_by = g.canceled_by,
  next_retry_at = g.next_retry_at,
  failure_reason = g.failure_reason,
  on_support_hold = g.on_support_hold,
  run_now_at = g.run_now_at,
  end_reason = g.end_reason,
  scheduled_at = g.scheduled_at,
  local_date = g.local_date,
  local_time = g.local_time,
  tz_id = g.tz_id,
  tzdata_version = g.tzdata_version
FROM {
  rows: id whole, version whole, status text, canceled_by text, next_retry_at instant, failure_reason text,
  on_support_hold truth, run_now_at instant, end_reason text, scheduled_at instant, local_date date, local_time text,
  tz_id text, tzdata_version text
} AS g
WHERE s.id = +g.id;

-- name: insert_automation_jobs
-- The look-up, the order and ON CONFLICT as in insert_automation_schedulers, and for the same reasons.
INSERT INTO automation_job (
  tenant_id, created_at, partition_key, row_key, automation_type, notification_type, input_hash, key_version,
  correlation_id, traceparent
)
SELECT :tenant_id, now(), g.*
FROM {
  items: partition_key text, row_key text, automation_type text, notification_type text, input_hash text,
  key_version whole, correlation_id text, traceparent text
} AS g
WHERE (
  SELECT j.id
  FROM automation_job AS j
  WHERE j.tenant_id = :tenant_id AND j.partition_key = g.partition_key AND j.row_key = g.row_key
) IS NULL
ORDER BY g.partition_key, g.row_key
ON CONFLICT DO NOTHING
RETURNING id;

-- name: read_automation_jobs
-- Whoever made them.
SELECT j.*
FROM {items: partition_key text, row_key text} AS g
JOIN automation_job AS j
  ON j.tenant_id = :tenant_id AND j.partition_key = g.partition_key AND j.row_key = g.row_key;

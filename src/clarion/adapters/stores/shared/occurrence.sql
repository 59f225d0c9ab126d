-- name: read_occurrences
-- Of one tenant, by their keys.
SELECT s.*
FROM {keys: scheduler_key text} AS g
JOIN automation_scheduler AS s ON s.tenant_id = :tenant_id AND s.scheduler_key = g.scheduler_key;

-- name: lock_occurrences
-- One by one in the order of their keys, as every other statement that locks more than one.
SELECT s.*
FROM {keys: tenant_id text, scheduler_key text} AS g
JOIN automation_scheduler AS s ON s.tenant_id = g.tenant_id AND s.scheduler_key = g.scheduler_key
FOR UPDATE OF s;

-- name: write_occurrences
-- All that may change of rows that are locked, as a rule left them.
UPDATE automation_scheduler AS s
SET
  trigger_type = g.trigger_type,
  setting = g.setting,
  source_type = g.source_type,
  source = g.source,
  trigger_key = g.trigger_key,
  target_date = g.target_date,
  offset_days = g.offset_days,
  metric = g.metric,
  threshold_value = g.threshold_value,
  firing_policy = g.firing_policy,
  scope = g.scope,
  business_unit = g.business_unit,
  primary_entity = g.primary_entity,
  notification_type = g.notification_type,
  input_hash = g.input_hash,
  scheduled_at = g.scheduled_at,
  local_date = g.local_date,
  local_time = g.local_time,
  tz_id = g.tz_id,
  tzdata_version = g.tzdata_version,
  status = g.status,
  version = g.version,
  lease_until = g.lease_until,
  retry_count = g.retry_count,
  next_retry_at = g.next_retry_at,
  failure_reason = g.failure_reason,
  on_support_hold = g.on_support_hold,
  run_now_at = g.run_now_at,
  end_reason = g.end_reason,
  canceled_by = g.canceled_by,
  dispatch_result = g.dispatch_result,
  trace_blob = g.trace_blob
FROM {
  rows: id whole, trigger_type text, setting text, source_type text, source text, trigger_key text, target_date date,
  offset_days whole, metric text, threshold_value text, firing_policy text, scope text, business_unit text,
  primary_entity text, notification_type text, input_hash text, scheduled_at instant, local_date date, local_time text,
  tz_id text, tzdata_version text, status text, version whole, lease_until instant, retry_count whole,
  next_retry_at instant, failure_reason text, on_support_hold truth, run_now_at instant, end_reason text,
  canceled_by text, dispatch_result text, trace_blob text
} AS g
WHERE s.id = +g.id;

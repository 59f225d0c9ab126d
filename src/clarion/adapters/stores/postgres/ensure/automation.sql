-- name: insert_automation_schedulers
-- The scalar look-up finds what is there by the unique key, one probe an item whatever the planner believes: a repeat
-- inserts nothing, takes no transaction id and no number of the sequence. ON CONFLICT decides a race. Sorted, so that
-- two callers cannot deadlock.
INSERT INTO automation_scheduler (
  tenant_id, scheduler_key, automation_type, trigger_type, setting, source_type, source, trigger_key, target_date,
  offset_days, metric, threshold_value, firing_policy, scope, business_unit, primary_entity, notification_type,
  input_hash, scheduled_at, local_date, local_time, tz_id, tzdata_version, status, version, lease_until, retry_count,
  next_retry_at, failure_reason, on_support_hold, canceled_by, dispatch_result, trace_blob, key_version,
  correlation_id, traceparent
)
SELECT $1, g.*
FROM json_to_recordset($2::json) AS g (
  scheduler_key text, automation_type text, trigger_type text, setting text, source_type text, source text,
  trigger_key text, target_date date, offset_days integer, metric text, threshold_value text, firing_policy text,
  scope text, business_unit text, primary_entity text, notification_type text, input_hash text,
  scheduled_at timestamptz, local_date date, local_time text, tz_id text, tzdata_version text, status text,
  version integer, lease_until timestamptz, retry_count integer, next_retry_at timestamptz, failure_reason text,
  on_support_hold boolean, canceled_by text, dispatch_result text, trace_blob text, key_version integer,
  correlation_id text, traceparent text
)
WHERE (
  SELECT s.id FROM automation_scheduler AS s WHERE s.tenant_id = $1 AND s.scheduler_key = g.scheduler_key
) IS NULL
ORDER BY g.scheduler_key
ON CONFLICT DO NOTHING
RETURNING scheduler_key;

-- name: read_automation_schedulers
-- A statement of its own, so that its snapshot holds what a winner committed while the insert waited. LIMIT keeps the
-- planner from turning the look-ups into a scan of the table.
SELECT s.*
FROM json_to_recordset($2::json) AS g (scheduler_key text)
CROSS JOIN LATERAL (
  SELECT
    id, scheduler_key, automation_type, trigger_type, setting, source_type, source, trigger_key, target_date,
    offset_days, metric, threshold_value, firing_policy, scope, business_unit, primary_entity, notification_type,
    input_hash, scheduled_at, local_date, local_time, tz_id, tzdata_version, status, version, lease_until,
    retry_count, next_retry_at, failure_reason, on_support_hold, canceled_by, dispatch_result, trace_blob,
    key_version, correlation_id, traceparent
  FROM automation_scheduler AS found
  WHERE found.tenant_id = $1 AND found.scheduler_key = g.scheduler_key
  LIMIT 1
) AS s;

-- name: move_automation_schedulers
-- Reactivates a row or gives it a new send time, only if it is still at the version that was read: the read takes no
-- lock, because a repeat must write nothing, so a worker's claim may have come between. Locked one by one in the order
-- of the key, as the inserts are. ANY over an array makes the update look its rows up by id.
WITH held AS MATERIALIZED (
  SELECT s.id, g.*
  FROM (
    SELECT *
    FROM json_to_recordset($2::json) AS r (
      scheduler_key text, read_version integer, version integer, status text, canceled_by text,
      next_retry_at timestamptz, scheduled_at timestamptz, local_date date, local_time text, tz_id text,
      tzdata_version text
    )
    ORDER BY r.scheduler_key
  ) AS g
  CROSS JOIN LATERAL (
    SELECT found.id
    FROM automation_scheduler AS found
    WHERE found.tenant_id = $1 AND found.scheduler_key = g.scheduler_key AND found.version = g.read_version
    LIMIT 1
    FOR UPDATE
  ) AS s
)
UPDATE automation_scheduler AS s
SET
  version = held.version,
  status = held.status,
  canceled_by = held.canceled_by,
  next_retry_at = held.next_retry_at,
  scheduled_at = held.scheduled_at,
  local_date = held.local_date,
  local_time = held.local_time,
  tz_id = held.tz_id,
  tzdata_version = held.tzdata_version
FROM held
WHERE s.id = ANY (ARRAY(SELECT held.id FROM held)) AND s.id = held.id
RETURNING s.scheduler_key;

-- name: insert_automation_jobs
-- The look-up, the order and ON CONFLICT as in insert_automation_schedulers, and for the same reasons.
INSERT INTO automation_job (
  tenant_id, partition_key, row_key, automation_type, notification_type, input_hash, key_version, correlation_id,
  traceparent
)
SELECT $1, g.*
FROM json_to_recordset($2::json) AS g (
  partition_key text, row_key text, automation_type text, notification_type text, input_hash text,
  key_version integer, correlation_id text, traceparent text
)
WHERE (
  SELECT j.id
  FROM automation_job AS j
  WHERE j.tenant_id = $1 AND j.partition_key = g.partition_key AND j.row_key = g.row_key
) IS NULL
ORDER BY g.partition_key, g.row_key
ON CONFLICT DO NOTHING
RETURNING partition_key, row_key;

-- name: read_automation_jobs
-- A statement of its own, for the loser of a race; LIMIT keeps the look-ups look-ups.
SELECT j.*
FROM json_to_recordset($2::json) AS g (partition_key text, row_key text)
CROSS JOIN LATERAL (
  SELECT
    id, partition_key, row_key, automation_type, notification_type, input_hash, key_version, correlation_id,
    traceparent
  FROM automation_job AS found
  WHERE found.tenant_id = $1 AND found.partition_key = g.partition_key AND found.row_key = g.row_key
  LIMIT 1
) AS j;

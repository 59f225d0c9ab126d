-- name: insert_idempotency_guards
-- First of all that a job needs, so that the unique key decides a race before either caller has made anything: whoever
-- comes second waits here and then reads the winner's coordinates. The look-up spares a repeat every write.
INSERT INTO idempotency_guard (
  tenant_id, operation, key_hash, payload_hash, job_partition_key, job_row_key, source_at, retired_at
)
SELECT $1, g.*
FROM json_to_recordset($2::json) AS g (
  operation text, key_hash text, payload_hash text, job_partition_key text, job_row_key text, source_at timestamptz,
  retired_at timestamptz
)
WHERE (
  SELECT i.key_hash
  FROM idempotency_guard AS i
  WHERE i.tenant_id = $1 AND i.operation = g.operation AND i.key_hash = g.key_hash
) IS NULL
ORDER BY g.operation, g.key_hash
ON CONFLICT DO NOTHING
RETURNING operation, key_hash;

-- name: read_idempotency_guards
-- A statement of its own: its snapshot holds the guard that the insert waited for. LIMIT keeps the look-ups look-ups.
SELECT i.*
FROM json_to_recordset($2::json) AS g (operation text, key_hash text)
CROSS JOIN LATERAL (
  SELECT operation, key_hash, payload_hash, job_partition_key, job_row_key, source_at, retired_at
  FROM idempotency_guard AS found
  WHERE found.tenant_id = $1 AND found.operation = g.operation AND found.key_hash = g.key_hash
  LIMIT 1
) AS i;

-- name: delete_idempotency_guards
-- Takes back guards that this transaction has just made for jobs that turned out to be in conflict: the key was not
-- used. By ctid, which nobody else can move: each guard is looked up once, whatever the planner believes.
DELETE FROM idempotency_guard
WHERE ctid = ANY (ARRAY(
  SELECT i.ctid
  FROM json_to_recordset($2::json) AS g (operation text, key_hash text)
  CROSS JOIN LATERAL (
    SELECT found.ctid
    FROM idempotency_guard AS found
    WHERE found.tenant_id = $1 AND found.operation = g.operation AND found.key_hash = g.key_hash
    LIMIT 1
  ) AS i
));

-- name: insert_notification_jobs
-- The look-up by row key (unique per tenant by itself), the order and ON CONFLICT as in every insert of an ensure.
INSERT INTO notification_job (
  tenant_id, partition_key, row_key, guid, message_id, event_type, operation, source_type, source, automation_key, run_key,
  template_key, asked_template_version, template_version, payload_hash, payload, recipients, source_at, bucket,
  key_version, actor, correlation_id, traceparent
)
SELECT
  $1, g.partition_key, g.row_key, g.guid, g.message_id, g.event_type, g.operation, g.source_type, g.source,
  g.automation_key, g.run_key, g.template_key, g.asked_template_version, g.template_version, g.payload_hash,
  decode(g.payload, 'base64'), g.recipients, g.source_at, g.bucket, g.key_version, g.actor, g.correlation_id,
  g.traceparent
FROM json_to_recordset($2::json) AS g (
  partition_key text, row_key text, guid uuid, message_id uuid, event_type text, operation text, source_type text,
  source text,
  automation_key text, run_key text, template_key text, asked_template_version integer, template_version integer,
  payload_hash text, payload text, recipients text, source_at timestamptz, bucket integer, key_version integer,
  actor text, correlation_id text, traceparent text
)
WHERE (SELECT j.id FROM notification_job AS j WHERE j.tenant_id = $1 AND j.row_key = g.row_key) IS NULL
ORDER BY g.row_key
ON CONFLICT DO NOTHING
RETURNING row_key;

-- name: read_notification_jobs
-- A statement of its own, for the loser of a race; LIMIT keeps the look-ups look-ups.
SELECT j.*
FROM json_to_recordset($2::json) AS g (row_key text)
CROSS JOIN LATERAL (
  SELECT
    id, partition_key, row_key, guid, message_id, event_type, operation, source_type, source, automation_key, run_key,
    template_key, asked_template_version, template_version, payload_hash, payload, recipients, source_at, bucket,
    key_version, actor, correlation_id, traceparent
  FROM notification_job AS found
  WHERE found.tenant_id = $1 AND found.row_key = g.row_key
  LIMIT 1
) AS j;

-- name: insert_notification_schedulers
-- The key is the dispatch key: a row that is there, in whatever state, is never made again. A row that does not say
-- when it is due is due now, by this server's clock.
INSERT INTO notification_scheduler (
  tenant_id, artifact_type, artifact_pk, artifact_rk, event_type, lane, stage, status, version, due_at, lease_until,
  retry_count, rescue_count, reason, diagnostics, correlation_id, traceparent
)
SELECT
  $1, g.artifact_type, g.artifact_pk, g.artifact_rk, g.event_type, g.lane, g.stage, g.status, g.version,
  coalesce(g.due_at, now()), g.lease_until, g.retry_count, g.rescue_count, g.reason, g.diagnostics,
  g.correlation_id, g.traceparent
FROM json_to_recordset($2::json) AS g (
  artifact_type text, artifact_pk text, artifact_rk text, event_type text, lane text, stage text, status text,
  version integer, due_at timestamptz, lease_until timestamptz, retry_count integer, rescue_count integer,
  reason text, diagnostics text, correlation_id text, traceparent text
)
WHERE (
  SELECT s.id
  FROM notification_scheduler AS s
  WHERE
    s.tenant_id = $1 AND s.artifact_type = g.artifact_type AND s.artifact_pk = g.artifact_pk
    AND s.artifact_rk = g.artifact_rk AND s.event_type = g.event_type
) IS NULL
ORDER BY g.artifact_type, g.artifact_pk, g.artifact_rk, g.event_type
ON CONFLICT DO NOTHING
RETURNING artifact_type, artifact_pk, artifact_rk, event_type;

-- name: read_notification_schedulers
-- A statement of its own, for the loser of a race; LIMIT keeps the look-ups look-ups.
SELECT s.*
FROM json_to_recordset($2::json) AS g (artifact_type text, artifact_pk text, artifact_rk text, event_type text)
CROSS JOIN LATERAL (
  SELECT
    id, artifact_type, artifact_pk, artifact_rk, event_type, lane, stage, status, version, due_at, lease_until,
    retry_count, rescue_count, reason, diagnostics, correlation_id, traceparent
  FROM notification_scheduler AS found
  WHERE
    found.tenant_id = $1 AND found.artifact_type = g.artifact_type AND found.artifact_pk = g.artifact_pk
    AND found.artifact_rk = g.artifact_rk AND found.event_type = g.event_type
  LIMIT 1
) AS s;

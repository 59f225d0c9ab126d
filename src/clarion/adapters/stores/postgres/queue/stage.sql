-- name: claim_stage
-- Lanes are walked in the order given, and within a lane the index: each row is locked when the walk reaches it, and the
-- walk ends with the last row that is wanted. What another worker holds is passed over. A row whose job is missing is
-- left alone. An instant that Python has no value for would fail the whole answer in the driver, after the claim: the
-- time that was due comes as a number, and a job's own time is left out where it is such a one.
WITH pick AS MATERIALIZED (
  SELECT s.id
  FROM unnest($2::text[]) AS g (lane)
  CROSS JOIN LATERAL (
    SELECT found.id
    FROM notification_scheduler AS found
    WHERE
      found.stage = $1 AND found.lane = g.lane AND found.due_at <= now() AND found.artifact_type = 'NotificationJob'
      AND (
        SELECT j.id FROM notification_job AS j WHERE j.tenant_id = found.tenant_id AND j.row_key = found.artifact_rk
      ) IS NOT NULL
    ORDER BY found.due_at, found.id
    FOR UPDATE SKIP LOCKED
  ) AS s
  LIMIT $3
), moved AS (
  UPDATE notification_scheduler AS s
  SET
    status = 'Processing', due_at = NULL, lease_until = now() + $4::interval, version = s.version + 1, moved_at = now()
  FROM (
    SELECT p.id, was.due_at AS was_due_at
    FROM pick AS p
    CROSS JOIN LATERAL (SELECT due_at FROM notification_scheduler AS found WHERE found.id = p.id LIMIT 1) AS was
  ) AS p
  WHERE s.id = p.id
  RETURNING
    s.tenant_id, extract(epoch FROM p.was_due_at)::double precision AS was_due, s.id, s.artifact_type, s.artifact_pk,
    s.artifact_rk, s.event_type, s.lane, s.stage, s.status, s.version, s.due_at, s.lease_until, s.retry_count,
    s.rescue_count, s.reason, s.diagnostics, s.correlation_id, s.traceparent
)
SELECT
  m.*, j.id AS job_id, j.partition_key AS job_partition_key, j.row_key AS job_row_key, j.guid AS job_guid,
  j.message_id AS job_message_id,
  j.event_type AS job_event_type, j.operation AS job_operation, j.source_type AS job_source_type,
  j.source AS job_source, j.automation_key AS job_automation_key, j.run_key AS job_run_key,
  j.template_key AS job_template_key, j.asked_template_version AS job_asked_template_version,
  j.template_version AS job_template_version, j.payload_hash AS job_payload_hash, j.payload AS job_payload,
  j.recipients AS job_recipients,
  CASE WHEN j.source_at BETWEEN timestamptz '0001-01-02' AND timestamptz '9999-12-30' THEN j.source_at END
    AS job_source_at,
  j.bucket AS job_bucket,
  j.key_version AS job_key_version, j.actor AS job_actor, j.correlation_id AS job_correlation_id,
  j.traceparent AS job_traceparent
FROM moved AS m
CROSS JOIN LATERAL (
  SELECT found.*
  FROM notification_job AS found
  WHERE found.tenant_id = m.tenant_id AND found.row_key = m.artifact_rk
  LIMIT 1
) AS j;

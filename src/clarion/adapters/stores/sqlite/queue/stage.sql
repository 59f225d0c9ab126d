-- name: find_due_stages
-- The heads of each lane, the urgent lanes first: sorting all that is due would cost more the more there is. SQLite has
-- no LATERAL, but a table-valued function takes an argument from the tables before it. A row without its job is not
-- taken, nor are those of messaging jobs, which have workers of their own.
SELECT
  s.tenant_id, s.id, s.artifact_type, s.artifact_pk, s.artifact_rk, s.event_type, s.lane, s.stage, s.status, s.version,
  s.due_at, s.lease_until, s.retry_count, s.rescue_count, s.reason, s.diagnostics, s.correlation_id, s.traceparent,
  j.id, j.partition_key, j.row_key, j.guid, j.message_id, j.event_type, j.operation, j.source_type, j.source,
  j.automation_key, j.run_key, j.template_key, j.asked_template_version, j.template_version, j.payload_hash, j.payload, j.recipients,
  j.source_at, j.bucket, j.key_version, j.actor, j.correlation_id, j.traceparent
FROM json_each(:lanes) AS g
CROSS JOIN json_each(
  (
    SELECT json_group_array(head.id)
    FROM (
      SELECT d.id
      FROM notification_scheduler AS d
      CROSS JOIN notification_job AS dj ON dj.tenant_id = d.tenant_id AND dj.row_key = d.artifact_rk
      WHERE
        d.stage = :stage AND d.lane = g.value AND d.due_at IS NOT NULL AND d.due_at <= clarion_now()
        AND d.artifact_type = 'NotificationJob'
      ORDER BY d.due_at, d.id
      LIMIT :limit
    ) AS head
  )
) AS heads
CROSS JOIN notification_scheduler AS s ON s.id = heads.value
CROSS JOIN notification_job AS j ON j.tenant_id = s.tenant_id AND j.row_key = s.artifact_rk
ORDER BY g.key, heads.key
LIMIT :limit;

-- name: take_stages
-- Ready → Processing, by those who were found a statement before: nobody else could write since.
UPDATE notification_scheduler
SET
  status = 'Processing', version = version + 1, due_at = NULL, lease_until = :lease_until, moved_at = clarion_now()
FROM json_each(:ids) AS g
WHERE notification_scheduler.id = +g.value AND status = 'Ready';

-- name: finish_stages
-- Where the claim still stands: another version means that somebody else has moved the row. A row that says nothing new
-- for a person keeps what was said before.
UPDATE notification_scheduler
SET
  status = g.value ->> 2,
  stage = g.value ->> 3,
  version = version + 1,
  due_at = CASE WHEN g.value ->> 2 = 'Ready' THEN clarion_now() + (g.value ->> 4) END,
  lease_until = NULL,
  retry_count = retry_count + (g.value ->> 5),
  reason = g.value ->> 6,
  diagnostics = coalesce(nullif(g.value ->> 7, ''), diagnostics),
  scheduled_at = CASE WHEN g.value ->> 3 <> stage THEN clarion_now() ELSE scheduled_at END,
  moved_at = clarion_now()
FROM json_each(:results) AS g
WHERE notification_scheduler.id = +(g.value ->> 0) AND version = g.value ->> 1 AND status = 'Processing'
RETURNING id;

-- name: read_schedulers
-- The rows of ids, for the few of a batch that need a support case.
SELECT
  s.tenant_id, s.id, s.artifact_type, s.artifact_pk, s.artifact_rk, s.event_type, s.lane, s.stage, s.status, s.version,
  s.due_at, s.lease_until, s.retry_count, s.rescue_count, s.reason, s.diagnostics, s.correlation_id, s.traceparent
FROM json_each(:ids) AS g
CROSS JOIN notification_scheduler AS s ON s.id = +g.value;

-- name: retry_scheduler
-- A person's word: what failed before is forgiven. By the job's guid, which the unique key of the row follows from.
UPDATE notification_scheduler
SET
  status = 'Ready',
  version = version + 1,
  due_at = clarion_now(),
  rescue_count = 0,
  retry_count = 0,
  reason = :reason,
  moved_at = clarion_now()
FROM notification_job AS j
WHERE
  j.tenant_id = :tenant_id AND j.guid = :guid AND notification_scheduler.tenant_id = :tenant_id
  AND artifact_type = 'NotificationJob' AND artifact_pk = j.partition_key AND artifact_rk = j.row_key
  AND status = 'Failed'
RETURNING notification_scheduler.id;

-- name: find_expired_stages
-- Claims whose lease ran out, the longest silent first: the head of a partial index.
SELECT
  s.tenant_id, s.id, s.artifact_type, s.artifact_pk, s.artifact_rk, s.event_type, s.lane, s.stage, s.status, s.version,
  s.due_at, s.lease_until, s.retry_count, s.rescue_count, s.reason, s.diagnostics, s.correlation_id, s.traceparent
FROM notification_scheduler AS s
WHERE s.lease_until IS NOT NULL AND s.lease_until <= clarion_now()
ORDER BY s.lease_until, s.id
LIMIT :limit;

-- name: rescue_stages
-- Back to Ready, or, for one that every worker dies of, to Failed (I-23).
UPDATE notification_scheduler
SET
  status = g.value ->> 1,
  version = version + 1,
  due_at = CASE WHEN g.value ->> 1 = 'Ready' THEN clarion_now() END,
  lease_until = NULL,
  rescue_count = rescue_count + 1,
  reason = coalesce(g.value ->> 2, reason),
  moved_at = clarion_now()
FROM json_each(:rows) AS g
WHERE notification_scheduler.id = +(g.value ->> 0) AND status = 'Processing';

-- name: freeze_recipients
-- What is stored first stands for ever (I-06).
UPDATE notification_job
SET recipients = g.value ->> 1
FROM json_each(:frozen) AS g
WHERE notification_job.id = +(g.value ->> 0) AND recipients IS NULL;

-- name: read_recipients
-- After the update: its own sets, and those that were there before it.
SELECT j.id, j.recipients FROM json_each(:frozen) AS g CROSS JOIN notification_job AS j ON j.id = g.value ->> 0;

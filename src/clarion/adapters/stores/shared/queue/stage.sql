-- name: finish_stages
-- Where the claim still stands: another version means that somebody else has moved the row. Rows are locked in their
-- order first. A result without diagnostics keeps those of before, and one without a cursor the place of before; another
-- stage begins without one. Who has come on has lost no worker.
UPDATE notification_scheduler AS s
SET
  status = g.to_status,
  stage = g.next_stage,
  version = s.version + 1,
  due_at = CASE WHEN g.to_status = 'Ready' THEN now() + g.delay END,
  lease_until = NULL,
  retry_count = s.retry_count + g.retries,
  reason = g.why,
  rule = g.rule,
  diagnostics = coalesce(nullif(g.diagnostics, ''), s.diagnostics),
  cursor = CASE WHEN g.next_stage = s.stage THEN coalesce(g.place, s.cursor) END,
  rescue_count = CASE WHEN g.place IS NULL THEN s.rescue_count ELSE 0 END,
  scheduled_at = CASE WHEN g.next_stage <> s.stage THEN now() ELSE s.scheduled_at END,
  moved_at = now()
FROM (
  SELECT g.*
  FROM {
    results: scheduler_id whole, at_version whole, to_status text, next_stage text, delay duration, retries whole,
    why text, rule text, diagnostics text, place text
  } AS g
  JOIN notification_scheduler AS h ON h.id = g.scheduler_id AND h.version = g.at_version AND h.status = 'Processing'
  FOR UPDATE OF h
) AS g
WHERE s.id = +g.scheduler_id
RETURNING id;

-- name: read_schedulers
-- Of the few of a batch that need a support case.
SELECT s.*
FROM {ids: id whole} AS g
JOIN notification_scheduler AS s ON s.id = g.id;

-- name: lock_expired_schedulers
-- Claims whose lease ran out, the oldest first. One that is just being finished is passed over.
SELECT s.*
FROM notification_scheduler AS s
WHERE s.lease_until <= now()
ORDER BY s.lease_until, s.id
LIMIT :limit
FOR UPDATE SKIP LOCKED;

-- name: rescue_schedulers
-- Back to Ready, or to Failed where every worker that took the job was lost (I-23).
UPDATE notification_scheduler AS s
SET
  status = g.to_status,
  version = s.version + 1,
  due_at = CASE WHEN g.to_status = 'Ready' THEN now() END,
  lease_until = NULL,
  rescue_count = s.rescue_count + 1,
  reason = coalesce(g.why, s.reason),
  moved_at = now()
FROM {rows: scheduler_id whole, to_status text, why text} AS g
WHERE s.id = +g.scheduler_id;

-- name: retry_schedulers
-- A person's word: what failed before is forgiven.
UPDATE notification_scheduler
SET
  status = 'Ready', version = version + 1, due_at = now(), rescue_count = 0, retry_count = 0, reason = :reason,
  moved_at = now()
WHERE
  tenant_id = :tenant_id AND artifact_type = :artifact_type AND artifact_pk = :artifact_pk AND artifact_rk = :artifact_rk
  AND status = 'Failed';

-- name: freeze_recipients
-- What is stored first stands for ever (I-06). Each job is looked up by its id before: with its tenant in the condition
-- of the update, all jobs of the tenant would be gone through.
UPDATE notification_job AS j
SET recipients = g.given
FROM (
  SELECT g.job_id, g.given
  FROM {frozen: job_id whole, given text} AS g
  JOIN notification_job AS n ON n.id = g.job_id AND n.tenant_id = :tenant_id
) AS g
WHERE j.id = +g.job_id AND j.recipients IS NULL
RETURNING id;

-- name: read_recipients
-- A statement of its own, for whoever came second.
SELECT j.id, j.recipients
FROM {ids: id whole} AS g
JOIN notification_job AS j ON j.id = g.id AND j.tenant_id = :tenant_id AND j.recipients IS NOT NULL;

-- name: insert_recipient_jobs
-- Once, however often a step is made again. Sorted, as every insert.
INSERT INTO recipient_job (tenant_id, recipient_id_hash, job_key, job_id)
SELECT :tenant_id, g.recipient_id_hash, g.job_key, g.job_id
FROM {lines: recipient_id_hash text, job_key text, job_id whole} AS g
WHERE true
ORDER BY g.recipient_id_hash, g.job_key
ON CONFLICT DO NOTHING;

-- name: hold_scheduler
-- As for every row that is made under a claim: nobody cancels or takes the job over until this transaction ends.
SELECT s.id
FROM notification_scheduler AS s
WHERE s.id = :id AND s.version = :version AND s.tenant_id = :tenant_id AND s.status = 'Processing'
FOR SHARE;

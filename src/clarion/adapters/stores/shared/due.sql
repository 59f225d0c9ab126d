-- name: lock_oldest_due
-- The head of the queue. A retry that a row waits for is part of its due time, so what waits stands behind what is due.
SELECT s.id, s.tenant_id, s.correlation_id
FROM automation_scheduler AS s /* indexed by automation_scheduler_ready */
WHERE s.standing = 'pending' AND s.due_at <= now()
ORDER BY s.due_at, s.id
LIMIT :limit
FOR UPDATE SKIP LOCKED;

-- name: find_tenants_with_due
-- One step along the index from tenant to tenant, however many rows each has; those with the oldest row first. Asked
-- only where more is due than one claim takes. The standing comes from the step before: with the word itself PostgreSQL
-- may take the index of all tenants' due rows, and leaf through those of the others.
WITH RECURSIVE turns (standing, tenant_id) AS (
  SELECT CAST('pending' AS text), CAST('' AS text)
  UNION ALL
  SELECT
    t.standing,
    (
      SELECT s.tenant_id
      FROM automation_scheduler AS s
      WHERE s.standing = t.standing AND s.tenant_id > t.tenant_id
      ORDER BY s.standing, s.tenant_id
      LIMIT 1
    )
  FROM turns AS t
  WHERE t.tenant_id IS NOT NULL
)
SELECT h.standing, h.tenant_id
FROM (
  SELECT
    t.standing,
    t.tenant_id,
    (
      SELECT s.due_at
      FROM automation_scheduler AS s
      WHERE s.standing = t.standing AND s.tenant_id = t.tenant_id
      ORDER BY s.standing, s.tenant_id, s.due_at
      LIMIT 1
    ) AS due_at
  FROM turns AS t
  WHERE t.tenant_id <> ''
) AS h
WHERE h.due_at <= now()
ORDER BY h.due_at, h.tenant_id
LIMIT :limit;

-- name: lock_due_of_tenants
-- Of each tenant as many as its part, the oldest first; the standing is given for the same reason.
SELECT s.id, s.tenant_id, s.correlation_id
FROM {tenants: standing text, tenant_id text} AS g
CROSS JOIN LATERAL (
  SELECT d.id AS value
  FROM automation_scheduler AS d
  WHERE d.standing = g.standing AND d.tenant_id = g.tenant_id AND d.due_at <= now()
  ORDER BY d.standing, d.tenant_id, d.due_at, d.id
  LIMIT :part
  FOR UPDATE SKIP LOCKED
) AS h
JOIN automation_scheduler AS s ON s.id = h.value;

-- name: take_due
-- The rows that were locked a statement before, so they are as they were read.
UPDATE automation_scheduler AS s
SET status = 'Processing', version = s.version + 1, lease_until = now() + g.lease
FROM {rows: row_id whole, lease duration} AS g
WHERE s.id = +g.row_id
RETURNING id;

-- name: read_taken
-- In a statement of its own, so that one that cannot be read takes nobody's claim away.
SELECT s.*
FROM {ids: id whole} AS g
JOIN automation_scheduler AS s ON s.id = g.id;

-- name: lock_lost_occurrences
-- Claims whose lease ran out, the oldest first. One that is just being finished is passed over.
SELECT s.id, s.tenant_id, s.scheduler_key, s.version, s.retry_count, s.primary_entity, s.correlation_id, now() AS now_at
FROM automation_scheduler AS s
WHERE s.lease_until <= now()
ORDER BY s.lease_until, s.id
LIMIT :limit
FOR UPDATE SKIP LOCKED;

-- name: rescue_occurrences
-- Back to Pending, one more retry; on hold where every worker that took it was lost (I-23).
UPDATE automation_scheduler AS s
SET
  status = 'Pending',
  version = s.version + 1,
  lease_until = NULL,
  retry_count = s.retry_count + 1,
  next_retry_at = CASE WHEN NOT g.held THEN now() + g.delay END,
  on_support_hold = g.held,
  failure_reason = g.why
FROM {rows: row_id whole, delay duration, held truth, why text} AS g
WHERE s.id = +g.row_id;

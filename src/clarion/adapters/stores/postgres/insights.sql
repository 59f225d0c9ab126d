-- name: list_tenants
-- Pages by the primary key, in the order that the database sorts its text in.
SELECT tenant_id FROM tenant WHERE tenant_id > $1 ORDER BY tenant_id LIMIT $2;

-- name: list_support_cases
-- Pages by the primary key: a page costs the same wherever it lies, and a case that opens meanwhile moves none.
SELECT
  case_id, kind, status, record, record_key, details, seen_count, correlation_id, first_seen_at, last_seen_at,
  resolved_at, resolved_by, resolution
FROM support_case
WHERE tenant_id = $1 AND case_id > coalesce($2::uuid, '00000000-0000-0000-0000-000000000000'::uuid)
ORDER BY case_id
LIMIT $3;

-- name: list_support_cases_by_status
-- A query of its own: `status = $2 OR $2 IS NULL` in one statement would keep the planner from any index on status.
SELECT
  case_id, kind, status, record, record_key, details, seen_count, correlation_id, first_seen_at, last_seen_at,
  resolved_at, resolved_by, resolution
FROM support_case
WHERE
  tenant_id = $1 AND status = $2 AND case_id > coalesce($3::uuid, '00000000-0000-0000-0000-000000000000'::uuid)
ORDER BY case_id
LIMIT $4;

-- name: find_support_case
-- By the primary key.
SELECT
  case_id, kind, status, record, record_key, details, seen_count, correlation_id, first_seen_at, last_seen_at,
  resolved_at, resolved_by, resolution
FROM support_case
WHERE tenant_id = $1 AND case_id = $2;

-- name: list_jobs
-- An entity's history along its index, in the order of bytes, which reverse ticks are made for.
SELECT j.guid, j.row_key, j.event_type, j.source_at, j.created_at, s.status AS scheduler_status
FROM (
  SELECT found.guid, found.partition_key, found.row_key, found.event_type, found.source_at, found.created_at
  FROM notification_job AS found
  WHERE found.tenant_id = $1 AND found.partition_key = $2 AND found.row_key COLLATE "C" > $3
  ORDER BY found.row_key COLLATE "C"
  LIMIT $4
) AS j
LEFT JOIN LATERAL (
  SELECT found.status
  FROM notification_scheduler AS found
  WHERE
    found.tenant_id = $1 AND found.artifact_type = 'NotificationJob' AND found.artifact_pk = j.partition_key
    AND found.artifact_rk = j.row_key
  LIMIT 1
) AS s ON true
ORDER BY j.row_key COLLATE "C";

-- name: list_doubts
-- Pages by id among the rows in doubt. Since when is told by the line of the last move into it; a decision to leave it
-- there is a later line.
SELECT
  o.id, o.message_id, o.channel, o.account, o.version, o.reason,
  coalesce(
    (
      SELECT max(t.at)
      FROM transition AS t
      WHERE t.bucket = o.bucket AND t.outgoing_id = o.id AND t.to_status = 'Uncertain' AND t.from_status <> 'Uncertain'
    ),
    o.created_at
  ) AS since_at
FROM outgoing_message AS o
WHERE o.tenant_id = $1 AND o.status = 'Uncertain' AND o.id > $2
ORDER BY o.id
LIMIT $3;

-- name: find_job_of_message
-- By the rows of the message, outgoing or in the inbox, or by the job that was answered with it; whichever there are
-- belong to one job.
SELECT j.guid
FROM (
  SELECT found.row_key AS pk FROM notification_job AS found WHERE found.tenant_id = $1 AND found.message_id = $2
  UNION ALL
  SELECT found.pk FROM outgoing_key AS found WHERE found.tenant_id = $1 AND found.message_id = $2
  UNION ALL
  SELECT found.job_row_key FROM user_message AS found WHERE found.tenant_id = $1 AND found.message_id = $2
) AS m
CROSS JOIN LATERAL (
  SELECT found.guid
  FROM notification_job AS found
  WHERE found.tenant_id = $1 AND found.row_key = m.pk
  LIMIT 1
) AS j
LIMIT 1;

-- name: measure
-- Asked every few seconds, so nothing is counted to its end: of every kind at most $3, which is more than anybody needs
-- to know that there is too much. The oldest message is the oldest of the flows' heads.
SELECT
  (
    SELECT count(*)
    FROM (
      SELECT found.id
      FROM unnest($1::text[]) AS stage (name)
      CROSS JOIN unnest($2::text[]) AS lane (name)
      CROSS JOIN LATERAL (
        SELECT s.id
        FROM notification_scheduler AS s
        WHERE s.stage = stage.name AND s.lane = lane.name AND s.due_at <= now()
      ) AS found
      LIMIT $3
    ) AS counted
  ) AS stages_waiting,
  (
    SELECT greatest(extract(epoch FROM now() - min(head.due_at)), 0)
    FROM unnest($1::text[]) AS stage (name)
    CROSS JOIN unnest($2::text[]) AS lane (name)
    CROSS JOIN LATERAL (
      SELECT s.due_at
      FROM notification_scheduler AS s
      WHERE s.stage = stage.name AND s.lane = lane.name AND s.due_at <= now()
      ORDER BY s.due_at, s.id
      LIMIT 1
    ) AS head
  )::float8 AS oldest_stage_seconds,
  (
    SELECT count(*)
    FROM (
      SELECT found.id
      FROM flow AS f
      CROSS JOIN LATERAL (
        SELECT o.id FROM outgoing_message AS o WHERE o.flow_id = f.id AND o.due_at <= now()
      ) AS found
      LIMIT $3
    ) AS counted
  ) AS outgoing_waiting,
  (
    SELECT greatest(extract(epoch FROM now() - min(head.due_at)), 0)
    FROM flow AS f
    CROSS JOIN LATERAL (
      SELECT o.due_at
      FROM outgoing_message AS o
      WHERE o.flow_id = f.id AND o.due_at <= now()
      ORDER BY o.due_at, o.id
      LIMIT 1
    ) AS head
  )::float8 AS oldest_outgoing_seconds,
  (
    SELECT count(*)
    FROM (SELECT o.lease_until FROM outgoing_message AS o WHERE o.lease_until IS NOT NULL LIMIT $3) AS counted
  ) AS sending,
  (
    SELECT count(*)
    FROM (SELECT o.id FROM outgoing_message AS o WHERE o.status = 'Uncertain' LIMIT $3) AS counted
  ) AS uncertain,
  (
    SELECT count(*)
    FROM (SELECT c.case_id FROM support_case AS c WHERE c.status = 'Open' LIMIT $3) AS counted
  ) AS open_support_cases;

-- name: list_tenants
-- Pages by the primary key.
SELECT tenant_id FROM tenant WHERE tenant_id > :after ORDER BY tenant_id LIMIT :limit;

-- name: find_job_of_message
-- By the outgoing rows of the message, by its line in an inbox, or by the job that was answered with it: each leads to
-- its job by the job's row key.
SELECT j.guid
FROM (
  SELECT o.pk AS row_key, 1 AS place
  FROM outgoing_message AS o
  WHERE o.tenant_id = :tenant_id AND o.message_id = :message_id
  UNION ALL
  SELECT u.job_row_key, 2 AS place
  FROM user_message AS u
  WHERE u.tenant_id = :tenant_id AND u.message_id = :message_id
  UNION ALL
  SELECT a.row_key, 3 AS place
  FROM notification_job AS a
  WHERE a.tenant_id = :tenant_id AND a.message_id = :message_id
) AS parent
CROSS JOIN notification_job AS j ON j.tenant_id = :tenant_id AND j.row_key = parent.row_key
ORDER BY parent.place
LIMIT 1;

-- name: list_jobs
-- Pages by the index of the history; the state comes from the scheduler row, if the job has one.
SELECT
  j.guid, j.row_key, j.event_type, j.source_at, j.created_at,
  (
    SELECT s.status
    FROM notification_scheduler AS s
    WHERE
      s.tenant_id = j.tenant_id AND s.artifact_type = 'NotificationJob' AND s.artifact_pk = j.partition_key
      AND s.artifact_rk = j.row_key
  ) AS scheduler_status
FROM notification_job AS j
WHERE j.tenant_id = :tenant_id AND j.partition_key = :partition_key AND j.row_key > :after
ORDER BY j.row_key
LIMIT :limit;

-- name: list_doubts
-- Pages by the partial index of doubts; since when it is one stands on the line of the last move into it, after which
-- there may be one of the decision to leave it there.
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
WHERE o.tenant_id = :tenant_id AND o.status = 'Uncertain' AND o.id > :after
ORDER BY o.id
LIMIT :limit;

-- name: list_support_cases
-- Pages by the primary key: a page costs the same wherever it lies, and a case that opens meanwhile moves none.
SELECT
  case_id, kind, status, record, record_key, details, seen_count, correlation_id, first_seen_at, last_seen_at,
  resolved_at, resolved_by, resolution
FROM support_case
WHERE tenant_id = :tenant_id AND case_id > :after
ORDER BY case_id
LIMIT :limit;

-- name: list_support_cases_by_status
-- The same by an index that holds the status too, so that a page of open cases is not searched among resolved ones.
SELECT
  case_id, kind, status, record, record_key, details, seen_count, correlation_id, first_seen_at, last_seen_at,
  resolved_at, resolved_by, resolution
FROM support_case
WHERE tenant_id = :tenant_id AND status = :status AND case_id > :after
ORDER BY case_id
LIMIT :limit;

-- name: find_support_case
-- By the primary key.
SELECT
  case_id, kind, status, record, record_key, details, seen_count, correlation_id, first_seen_at, last_seen_at,
  resolved_at, resolved_by, resolution
FROM support_case
WHERE tenant_id = :tenant_id AND case_id = :case_id;

-- name: measure
-- Counts go over partial indexes that hold what waits and nothing else, the ages are the heads of those indexes; flows
-- are few. What is not due yet does not wait.
SELECT
  (
    SELECT count(*)
    FROM json_each(:stages) AS stages
    CROSS JOIN json_each(:lanes) AS lanes
    CROSS JOIN notification_scheduler AS s
      ON s.stage = stages.value AND s.lane = lanes.value AND s.due_at IS NOT NULL AND s.due_at <= clarion_now()
  ) AS stages_waiting,
  (
    SELECT min(
      (
        SELECT s.due_at
        FROM notification_scheduler AS s
        WHERE s.stage = stages.value AND s.lane = lanes.value AND s.due_at IS NOT NULL AND s.due_at <= clarion_now()
        ORDER BY s.due_at
        LIMIT 1
      )
    )
    FROM json_each(:stages) AS stages
    CROSS JOIN json_each(:lanes) AS lanes
  ) AS oldest_stage_due_at,
  (
    SELECT count(*)
    FROM flow AS f
    CROSS JOIN outgoing_message AS o ON o.flow_id = f.id AND o.due_at IS NOT NULL AND o.due_at <= clarion_now()
  ) AS outgoing_waiting,
  (
    SELECT min(
      (
        SELECT o.due_at
        FROM outgoing_message AS o
        WHERE o.flow_id = f.id AND o.due_at IS NOT NULL AND o.due_at <= clarion_now()
        ORDER BY o.due_at
        LIMIT 1
      )
    )
    FROM flow AS f
  ) AS oldest_outgoing_due_at,
  (SELECT count(*) FROM outgoing_message AS o WHERE o.lease_until IS NOT NULL AND o.lease_until > 0) AS sending,
  (SELECT count(*) FROM outgoing_message AS doubts WHERE doubts.status = 'Uncertain') AS uncertain,
  (SELECT count(*) FROM support_case AS cases WHERE cases.status = 'Open') AS open_support_cases;

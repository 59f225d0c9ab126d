-- name: list_tenants
-- Pages by the primary key, in the order that the database sorts its text in.
SELECT tenant_id FROM tenant WHERE tenant_id > :after ORDER BY tenant_id LIMIT :limit;

-- name: find_job_of_message
-- By the rows of the message, outgoing or in the inbox, or by the job that was answered with it; whichever there are
-- belong to one job. The outgoing rows of a messaging job have its guid for a key, by which its anchor is found.
SELECT j.guid
FROM (
  SELECT a.row_key FROM notification_job AS a WHERE a.tenant_id = :tenant_id AND a.message_id = :message_id
  UNION ALL
  SELECT k.pk FROM outgoing_key AS k WHERE k.tenant_id = :tenant_id AND k.message_id = :message_id
  UNION ALL
  SELECT a.row_key
  FROM outgoing_key AS k
  JOIN notification_job AS a ON a.tenant_id = :tenant_id AND a.messaging_job = k.pk
  WHERE k.tenant_id = :tenant_id AND k.message_id = :message_id
  UNION ALL
  SELECT u.job_row_key FROM user_message AS u WHERE u.tenant_id = :tenant_id AND u.message_id = :message_id
) AS m
JOIN notification_job AS j ON j.tenant_id = :tenant_id AND j.row_key = m.row_key
LIMIT 1;

-- name: list_jobs
-- Pages by the index of an entity's history, in the order of bytes, which makes direct jobs newest first.
SELECT
  j.guid, j.row_key, j.event_type, j.source_at, j.created_at,
  CASE WHEN j.message_id IS NOT NULL THEN j.recipients END AS recipient
FROM notification_job AS j
WHERE j.tenant_id = :tenant_id AND j.partition_key = :partition_key AND j.row_key COLLATE "C" > :after
ORDER BY j.row_key COLLATE "C"
LIMIT :limit;

-- name: list_latest_jobs
-- Pages by the index of time, whoever made the jobs: only the row key of a direct job begins with its time.
SELECT
  j.guid, j.row_key, j.event_type, j.source_at, j.created_at,
  CASE WHEN j.message_id IS NOT NULL THEN j.recipients END AS recipient
FROM notification_job AS j
WHERE j.tenant_id = :tenant_id AND (j.source_at, j.guid) < (:at, :guid)
ORDER BY j.source_at DESC, j.guid DESC
LIMIT :limit;

-- name: find_standings
-- For each job the state of its pending row, and how many recipients, messages and inbox rows it has. Recipients are
-- counted by a word that stands once for each of them; of a set in pages by its manifest, which is the text then.
SELECT
  j.guid,
  CASE WHEN substr(j.recipients, 1, 1) = :manifest_begins THEN j.recipients END AS manifest,
  (
    SELECT s.status
    FROM notification_scheduler AS s
    WHERE
      s.tenant_id = :tenant_id
      AND s.artifact_type = CASE WHEN j.messaging_job IS NULL THEN 'NotificationJob' ELSE 'MessagingJob' END
      AND s.artifact_pk = coalesce(j.messaging_job, j.partition_key)
      AND s.artifact_rk = coalesce(j.messaging_job, j.row_key)
    LIMIT 1
  ) AS work,
  coalesce((length(j.recipients) - length(replace(j.recipients, :counted_by, ''))) / length(:counted_by), 0)
    AS recipients,
  (
    SELECT count(DISTINCT m.message_id)
    FROM (
      SELECT k.message_id
      FROM outgoing_key AS k
      WHERE k.tenant_id = :tenant_id AND k.bucket = j.bucket AND k.pk = coalesce(j.messaging_job, j.row_key)
      UNION ALL
      SELECT u.message_id FROM user_message AS u WHERE u.tenant_id = :tenant_id AND u.job_row_key = j.row_key
    ) AS m
  ) AS addressed,
  (SELECT count(*) FROM user_message AS i WHERE i.tenant_id = :tenant_id AND i.job_row_key = j.row_key) AS inbox
FROM {jobs: guid guid} AS g
JOIN notification_job AS j ON j.tenant_id = :tenant_id AND j.guid = g.guid;

-- name: count_messages_of_jobs
-- How many messages of each job are in each state, by the first parts of their key; and why, where a preference is told
-- from another suppression.
SELECT j.guid, o.status, o.reason_class, count(*) AS messages
FROM {jobs: guid guid} AS g
JOIN notification_job AS j ON j.tenant_id = :tenant_id AND j.guid = g.guid
JOIN outgoing_key AS k ON k.tenant_id = :tenant_id AND k.bucket = j.bucket AND k.pk = coalesce(j.messaging_job, j.row_key)
JOIN outgoing_message AS o ON o.bucket = k.bucket AND o.id = k.outgoing_id
GROUP BY j.guid, o.status, o.reason_class;

-- name: find_payloads
-- By the unique guid of each job.
SELECT j.guid, j.payload
FROM {jobs: guid guid} AS g
JOIN notification_job AS j ON j.tenant_id = :tenant_id AND j.guid = g.guid
WHERE j.payload IS NOT NULL;

-- name: find_addresses
-- By the primary key; an id of another tenant finds nothing.
SELECT a.*
FROM {addresses: id whole} AS g
JOIN address_version AS a ON a.id = g.id AND a.tenant_id = :tenant_id
ORDER BY a.id;

-- name: list_uncertain
-- Pages by the partial index of uncertain rows. `since_at` is the last move into that state; the line of a decision to
-- leave it there comes after that move and does not count.
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
-- A statement of its own, for the index that holds the status too: a page of open cases is not searched among resolved
-- ones.
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
-- Asked every few seconds, so nothing is counted to its end: of every kind at most `counted_max`. The oldest message is
-- the oldest of the flows' heads, and flows are few. What is not due yet does not wait.
SELECT
  now() AS now,
  (
    SELECT count(*)
    FROM (
      SELECT s.id
      FROM {stages: name text} AS stage
      CROSS JOIN {lanes: name text} AS lane
      JOIN notification_scheduler AS s ON s.stage = stage.name AND s.lane = lane.name AND s.due_at <= now()
      LIMIT :counted_max
    ) AS counted
  ) AS stages_waiting,
  (
    SELECT min(
      (
        SELECT s.due_at
        FROM notification_scheduler AS s
        WHERE s.stage = stage.name AND s.lane = lane.name AND s.due_at <= now()
        ORDER BY s.due_at
        LIMIT 1
      )
    )
    FROM {stages: name text} AS stage
    CROSS JOIN {lanes: name text} AS lane
  ) AS oldest_stage_due_at,
  (
    SELECT count(*)
    FROM (
      SELECT o.id
      FROM flow AS f
      JOIN outgoing_message AS o ON o.flow_id = f.id AND o.due_at <= now()
      LIMIT :counted_max
    ) AS counted
  ) AS outgoing_waiting,
  (
    SELECT min(
      (
        SELECT o.due_at
        FROM outgoing_message AS o
        WHERE o.flow_id = f.id AND o.due_at <= now()
        ORDER BY o.due_at
        LIMIT 1
      )
    )
    FROM flow AS f
  ) AS oldest_outgoing_due_at,
  (
    SELECT count(*)
    FROM (
      SELECT sending.lease_until
      FROM outgoing_message AS sending
      WHERE sending.lease_until IS NOT NULL
      ORDER BY sending.lease_until
      LIMIT :counted_max
    ) AS counted
  ) AS sending,
  (
    SELECT count(*)
    FROM (
      SELECT uncertain.id FROM outgoing_message AS uncertain WHERE uncertain.status = 'Uncertain' LIMIT :counted_max
    ) AS counted
  ) AS uncertain,
  (
    SELECT count(*)
    FROM (
      SELECT a.id
      FROM automation_scheduler AS a /* indexed by automation_scheduler_ready */
      WHERE a.standing = 'pending' AND a.due_at <= now()
      LIMIT :counted_max
    ) AS counted
  ) AS occurrences_due,
  (
    SELECT a.due_at
    FROM automation_scheduler AS a /* indexed by automation_scheduler_ready */
    WHERE a.standing = 'pending' AND a.due_at <= now()
    ORDER BY a.due_at
    LIMIT 1
  ) AS oldest_occurrence_due_at,
  (
    SELECT count(*)
    FROM (
      SELECT a.id
      FROM automation_scheduler AS a /* indexed by automation_scheduler_standing */
      WHERE a.standing = 'held'
      LIMIT :counted_max
    ) AS counted
  ) AS occurrences_held,
  (
    SELECT count(*)
    FROM (
      SELECT a.id
      FROM automation_scheduler AS a /* indexed by automation_scheduler_standing */
      WHERE a.standing = 'failed'
      LIMIT :counted_max
    ) AS counted
  ) AS occurrences_failed,
  (
    SELECT count(*)
    FROM (SELECT cases.case_id FROM support_case AS cases WHERE cases.status = 'Open' LIMIT :counted_max) AS counted
  ) AS open_support_cases;

-- name: measure_routes
-- By the heads of the flows, as in `measure`; flows are few. What is not due yet does not wait.
SELECT head.route, min(head.due_at) AS oldest_due_at, now() AS now
FROM (
  SELECT
    f.route,
    (
      SELECT o.due_at
      FROM outgoing_message AS o
      WHERE o.flow_id = f.id AND o.due_at <= now()
      ORDER BY o.due_at
      LIMIT 1
    ) AS due_at
  FROM flow AS f
) AS head
WHERE head.due_at IS NOT NULL
GROUP BY head.route
ORDER BY head.route COLLATE "C";

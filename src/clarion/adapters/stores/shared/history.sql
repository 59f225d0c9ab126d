-- name: list_jobs_of_recipient
-- Pages by the primary key of what recipients have, and by the history of the place where jobs of one named recipient
-- open, which have no recipients before these are decided. Both have the same keys for the same jobs, newest first.
SELECT
  j.guid, j.row_key, j.messaging_job, found.job_key, j.event_type, j.source_at, j.created_at, j.recipients IS NOT NULL AS is_decided,
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
  CASE WHEN substr(j.recipients, 1, 1) = :manifest_begins THEN j.recipients END AS manifest
FROM (
  SELECT made.job_key, made.job_id
  FROM (
    SELECT head.job_key, head.job_id
    FROM (
      SELECT r.job_key, r.job_id
      FROM recipient_job AS r
      WHERE r.tenant_id = :tenant_id AND r.recipient_id_hash = :recipient_id_hash AND r.job_key > :after
      ORDER BY r.job_key
      LIMIT :limit
    ) AS head
    UNION
    SELECT line.job_key, line.job_id
    FROM (
      SELECT n.row_key COLLATE "C" AS job_key, n.id AS job_id
      FROM notification_job AS n
      WHERE n.tenant_id = :tenant_id AND n.partition_key = :partition_key AND n.row_key COLLATE "C" > :after
      ORDER BY n.row_key COLLATE "C"
      LIMIT :limit
    ) AS line
  ) AS made
  ORDER BY made.job_key COLLATE "C"
  LIMIT :limit
) AS found
JOIN notification_job AS j ON j.id = found.job_id
ORDER BY found.job_key COLLATE "C";

-- name: count_lines_of_messages
-- In inboxes, by the index of messages.
SELECT g.message_id, count(*) AS lines
FROM {messages: message_id guid} AS g
JOIN user_message AS u ON u.tenant_id = :tenant_id AND u.message_id = g.message_id
GROUP BY g.message_id;

-- name: count_outgoing_of_messages
-- By the index of messages, in each state.
SELECT g.message_id, o.status, count(*) AS messages
FROM {messages: message_id guid} AS g
JOIN outgoing_key AS k ON k.tenant_id = :tenant_id AND k.message_id = g.message_id
JOIN outgoing_message AS o ON o.bucket = k.bucket AND o.id = k.outgoing_id
GROUP BY g.message_id, o.status;

-- name: find_sets
-- By the unique guid of each job; one for which nobody is decided has none.
SELECT j.guid, j.recipients
FROM {jobs: guid guid} AS g
JOIN notification_job AS j ON j.tenant_id = :tenant_id AND j.guid = g.guid
WHERE j.recipients IS NOT NULL;

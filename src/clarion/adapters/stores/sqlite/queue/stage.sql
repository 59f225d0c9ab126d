-- name: find_due_stages
-- The heads of each lane: sorting all that is due would cost more the more there is. First each lane's part of the
-- limit, then what is left of it to the urgent lanes first. SQLite has no LATERAL, but a table-valued function takes an
-- argument from the tables before it. A row without its job is not taken; the job of a row that waits for a messaging
-- job is the one that tells of its content. The columns of the job stand behind the one named `job`, whichever they are.
SELECT s.*, NULL AS job, j.*
FROM json_each(:lanes) AS g
CROSS JOIN json_each(
  (
    SELECT json_group_array(head.id)
    FROM (
      SELECT d.id
      FROM notification_scheduler AS d
      WHERE
        d.stage = :stage AND d.lane = g.value ->> 0 AND d.due_at IS NOT NULL AND d.due_at <= clarion_now()
        AND d.tenant_id NOT IN (SELECT w.value FROM json_each(:without) AS w)
        AND coalesce(
          (
            SELECT j.id
            FROM notification_job AS j
            WHERE
              j.tenant_id = d.tenant_id AND j.row_key = d.artifact_rk AND d.artifact_type = 'NotificationJob'
          ),
          (
            SELECT j.id
            FROM notification_job AS j
            WHERE
              j.tenant_id = d.tenant_id AND j.messaging_job = d.artifact_rk AND d.artifact_type = 'MessagingJob'
          )
        ) IS NOT NULL
      ORDER BY d.due_at, d.id
      LIMIT :limit
    ) AS head
  )
) AS heads
CROSS JOIN notification_scheduler AS s ON s.id = heads.value
CROSS JOIN notification_job AS j
  ON
    j.id = coalesce(
      (
        SELECT w.id
        FROM notification_job AS w
        WHERE w.tenant_id = s.tenant_id AND w.row_key = s.artifact_rk AND s.artifact_type = 'NotificationJob'
      ),
      (
        SELECT w.id
        FROM notification_job AS w
        WHERE w.tenant_id = s.tenant_id AND w.messaging_job = s.artifact_rk AND s.artifact_type = 'MessagingJob'
      )
    )
ORDER BY heads.key >= g.value ->> 1, g.key, heads.key
LIMIT :limit;

-- name: take_stages
-- Ready → Processing, by those who were found a statement before: nobody else could write since.
UPDATE notification_scheduler
SET
  status = 'Processing', version = version + 1, due_at = NULL, lease_until = :lease_until, moved_at = clarion_now()
FROM json_each(:ids) AS g
WHERE notification_scheduler.id = +g.value AND status = 'Ready';

-- name: claim_stage
-- Each lane is walked along its index for its part of the limit, and then again, in the order given, for what is left of
-- it. Each row is locked when a walk reaches it, and the walks end with the last row that is wanted. What another worker
-- holds is passed over. A row whose job is missing is left alone, and so are those of tenants that are not wanted. The
-- job of a row that waits for a messaging job is the one that tells of its content. An instant that Python has no value
-- for would fail the whole answer in the driver, after the claim: the time that was due comes as a number, and a job
-- whose own time is such a one is left out of its row. The columns of the job stand behind the one named `job`, whichever they are.
WITH part AS MATERIALIZED (
  SELECT s.id
  FROM {parts: lane text, part whole} AS g
  CROSS JOIN LATERAL (
    SELECT found.id
    FROM notification_scheduler AS found
    WHERE
      found.stage = :stage AND found.lane = g.lane AND found.due_at <= now()
      AND found.tenant_id NOT IN {without: text}
      AND coalesce(
        (
          SELECT j.id
          FROM notification_job AS j
          WHERE
            j.tenant_id = found.tenant_id AND j.row_key = found.artifact_rk AND found.artifact_type = 'NotificationJob'
        ),
        (
          SELECT j.id
          FROM notification_job AS j
          WHERE
            j.tenant_id = found.tenant_id AND j.messaging_job = found.artifact_rk AND found.artifact_type = 'MessagingJob'
        )
      ) IS NOT NULL
    ORDER BY found.due_at, found.id
    LIMIT g.part
    FOR UPDATE SKIP LOCKED
  ) AS s
), rest AS MATERIALIZED (
  SELECT s.id
  FROM {lanes: lane text} AS g
  CROSS JOIN LATERAL (
    SELECT found.id
    FROM notification_scheduler AS found
    WHERE
      found.stage = :stage AND found.lane = g.lane AND found.due_at <= now()
      AND found.tenant_id NOT IN {without: text}
      AND found.id NOT IN (SELECT p.id FROM part AS p)
      AND coalesce(
        (
          SELECT j.id
          FROM notification_job AS j
          WHERE
            j.tenant_id = found.tenant_id AND j.row_key = found.artifact_rk AND found.artifact_type = 'NotificationJob'
        ),
        (
          SELECT j.id
          FROM notification_job AS j
          WHERE
            j.tenant_id = found.tenant_id AND j.messaging_job = found.artifact_rk AND found.artifact_type = 'MessagingJob'
        )
      ) IS NOT NULL
    ORDER BY found.due_at, found.id
    FOR UPDATE SKIP LOCKED
  ) AS s
  LIMIT :limit - (SELECT count(*) FROM part)
), pick AS (
  SELECT p.id FROM part AS p
  UNION ALL
  SELECT r.id FROM rest AS r
), moved AS (
  UPDATE notification_scheduler AS s
  SET
    status = 'Processing', due_at = NULL, lease_until = now() + :lease::interval, version = s.version + 1, moved_at = now()
  FROM (
    SELECT p.id, was.due_at AS was_due_at
    FROM pick AS p
    CROSS JOIN LATERAL (SELECT due_at FROM notification_scheduler AS found WHERE found.id = p.id LIMIT 1) AS was
  ) AS p
  WHERE s.id = p.id
  RETURNING s.*, extract(epoch FROM p.was_due_at)::double precision AS was_due
)
SELECT m.*, NULL AS job, j.*
FROM moved AS m
LEFT JOIN LATERAL (
  SELECT found.*
  FROM notification_job AS found
  WHERE
    found.id = coalesce(
      (
        SELECT j.id
        FROM notification_job AS j
        WHERE
          j.tenant_id = m.tenant_id AND j.row_key = m.artifact_rk AND m.artifact_type = 'NotificationJob'
      ),
      (
        SELECT j.id
        FROM notification_job AS j
        WHERE
          j.tenant_id = m.tenant_id AND j.messaging_job = m.artifact_rk AND m.artifact_type = 'MessagingJob'
      )
    )
    AND found.source_at BETWEEN timestamptz '0001-01-02' AND timestamptz '9999-12-30'
  LIMIT 1
) AS j ON true;

-- name: lock_code_jobs
-- Jobs of one-time codes whose data is still there, in the order of their ids. A retry locks its job too, so that what
-- is read of these jobs next stays true until their data is erased. One that somebody holds is found the next time.
SELECT j.id
FROM notification_job AS j
WHERE j.one_time_code AND j.payload IS NOT NULL AND j.id > :after
ORDER BY j.id
LIMIT :limit
FOR UPDATE SKIP LOCKED;

-- name: read_code_standings
-- A statement of its own, so that it sees what was committed before the locks were had. The states stand in FILTER:
-- as conditions they would have SQLite begin with an index of states where its statistics are of an empty queue.
SELECT
  j.id, s.status AS work,
  (
    SELECT count(*) FILTER (WHERE o.status IN {open: text})
    FROM outgoing_key AS k
    JOIN outgoing_message AS o ON o.bucket = k.bucket AND o.id = k.outgoing_id
    WHERE k.tenant_id = j.tenant_id AND k.bucket = j.bucket AND k.pk = j.row_key
  ) AS waiting,
  (
    SELECT count(*) FILTER (WHERE o.status = 'Uncertain' AND NOT coalesce(o.expires_at <= now(), false))
    FROM outgoing_key AS k
    JOIN outgoing_message AS o ON o.bucket = k.bucket AND o.id = k.outgoing_id
    WHERE k.tenant_id = j.tenant_id AND k.bucket = j.bucket AND k.pk = j.row_key
  ) AS undecided
FROM {ids: id whole} AS g
JOIN notification_job AS j ON j.id = g.id
LEFT JOIN notification_scheduler AS s
  ON
    s.tenant_id = j.tenant_id AND s.artifact_type = 'NotificationJob' AND s.artifact_pk = j.partition_key
    AND s.artifact_rk = j.row_key AND s.event_type = j.event_type;

-- name: erase_payloads
-- The recipients go with the data: who got it stands in the frozen set.
UPDATE notification_job SET payload = NULL WHERE id IN {ids: whole};

-- name: lock_code_job
-- For a retry: the lock keeps the data from being erased until the retry is committed.
SELECT j.payload IS NULL AS is_erased
FROM notification_job AS j
WHERE j.tenant_id = :tenant_id AND j.row_key = :row_key AND j.one_time_code
FOR UPDATE;

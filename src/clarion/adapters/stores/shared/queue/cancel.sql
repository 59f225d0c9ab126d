-- name: set_gate
-- One row, however many messages stand behind it. It waits for the claims that hold the row, and those that come after
-- it see it. Nothing is written where the gate stands so already.
INSERT INTO broadcast AS s (tenant_id, broadcast, gate)
SELECT :tenant_id, :broadcast, :gate
WHERE
  :gate <> 'Open' OR EXISTS (SELECT 1 FROM broadcast AS k WHERE k.tenant_id = :tenant_id AND k.broadcast = :broadcast)
ON CONFLICT (tenant_id, broadcast) DO UPDATE SET gate = excluded.gate
WHERE s.gate <> excluded.gate;

-- name: lock_called_off_rows
-- Waiting rows that were called off one by one. One that somebody holds is passed over, and found the next time.
SELECT o.bucket, o.id
FROM outgoing_message AS o
WHERE o.cancel_at IS NOT NULL AND o.due_at IS NOT NULL
ORDER BY o.cancel_at, o.id
LIMIT :limit
FOR UPDATE SKIP LOCKED;

-- name: lock_rows_of_canceled
-- Waiting rows of canceled campaigns, flow by flow. It ends with the last row that is wanted, so that a canceled
-- million costs no more than its first chunk.
SELECT o.bucket, o.id
FROM broadcast AS s
JOIN flow AS f ON f.tenant_id = s.tenant_id AND f.broadcast = s.broadcast AND f.broadcast <> ''
JOIN outgoing_message AS o ON o.flow_id = f.id AND o.due_at IS NOT NULL
WHERE s.gate = 'Canceled'
LIMIT :limit
FOR UPDATE OF o SKIP LOCKED;

-- name: find_job
-- By its guid, which is what a person knows, or by that of the messaging job whose content it tells of. Each by its own
-- index.
SELECT j.partition_key, j.row_key, j.bucket, j.messaging_job
FROM notification_job AS j
WHERE j.tenant_id = :tenant_id AND j.guid = :guid
UNION
SELECT j.partition_key, j.row_key, j.bucket, j.messaging_job
FROM notification_job AS j
WHERE j.tenant_id = :tenant_id AND j.messaging_job = :messaging_job;

-- name: cancel_schedulers
-- First of a cancel: it waits for the batches that hold the row while they insert messages, and none inserts after it.
-- The messages that those have made are seen by the statement after it.
UPDATE notification_scheduler
SET
  status = 'Canceled', version = version + 1, due_at = NULL, lease_until = NULL, reason = :reason, moved_at = now()
WHERE
  tenant_id = :tenant_id AND artifact_type = :artifact_type AND artifact_pk = :artifact_pk AND artifact_rk = :artifact_rk
  AND status IN {statuses: text};

-- name: find_rows_of_job
-- So many of its rows, in the order of their keys. Of those that are final, or called off before, only the key is told,
-- by which the next set goes on.
SELECT found.rk, o.bucket, o.id
FROM (
  SELECT w.rk, w.bucket, w.outgoing_id
  FROM outgoing_key AS w
  WHERE w.tenant_id = :tenant_id AND w.bucket = :bucket AND w.pk = :outgoing_pk AND w.rk > :after
  ORDER BY w.rk
  LIMIT :limit
) AS found
LEFT JOIN outgoing_message AS o
  ON o.bucket = found.bucket AND o.id = found.outgoing_id AND o.cancel_at IS NULL AND o.status NOT IN {final: text}
ORDER BY found.rk;

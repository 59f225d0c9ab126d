-- name: set_gate
-- One row, however many messages stand behind it; none is given where it stands so already.
INSERT INTO broadcast (tenant_id, broadcast, gate)
SELECT :tenant_id, :broadcast, :gate
WHERE
  :gate <> 'Open' OR EXISTS (SELECT 1 FROM broadcast AS s WHERE s.tenant_id = :tenant_id AND s.broadcast = :broadcast)
ON CONFLICT (tenant_id, broadcast) DO UPDATE SET gate = excluded.gate
WHERE broadcast.gate <> excluded.gate
RETURNING broadcast;

-- name: find_called_off
-- Waiting rows of canceled broadcasts (a partial index holds only those), flow by flow, and waiting rows that were called
-- off one by one. As many of each as may be moved at most, so that a canceled million costs no more than its first
-- chunk.
SELECT id
FROM (
  SELECT o.id
  FROM broadcast AS canceled
  CROSS JOIN flow AS f ON f.tenant_id = canceled.tenant_id AND f.broadcast = canceled.broadcast AND f.broadcast <> ''
  CROSS JOIN outgoing_message AS o ON o.flow_id = f.id AND o.due_at IS NOT NULL
  WHERE canceled.gate = 'Canceled'
  LIMIT :limit
)
UNION
SELECT id
FROM (
  SELECT o.id
  FROM outgoing_message AS o
  WHERE o.cancel_at IS NOT NULL AND o.due_at IS NOT NULL
  ORDER BY o.cancel_at
  LIMIT :limit
)
ORDER BY id
LIMIT :limit;

-- name: cancel_scheduler
-- Whoever holds it loses it by this: its version has moved on, and no row is made under it any more.
UPDATE notification_scheduler
SET
  status = 'Canceled',
  version = version + 1,
  due_at = NULL,
  lease_until = NULL,
  reason = :reason,
  moved_at = clarion_now()
WHERE
  tenant_id = :tenant_id AND artifact_type = 'NotificationJob' AND artifact_pk = :partition_key
  AND artifact_rk = :row_key AND status IN ('Ready', 'Processing', 'Failed')
RETURNING id;

-- name: find_job
-- By guid.
SELECT partition_key, row_key, bucket FROM notification_job WHERE tenant_id = :tenant_id AND guid = :guid;

-- name: find_rows_of_job
-- By the first parts of the unique key.
SELECT id
FROM outgoing_message
WHERE
  tenant_id = :tenant_id AND bucket = :bucket AND pk = :row_key AND cancel_at IS NULL
  AND status IN ('Created', 'RetryReady', 'Sending', 'Uncertain')
ORDER BY id;

-- name: list_tenants
-- All of them: each has a log of its own, and the time is everybody's.
SELECT tenant_id FROM tenant ORDER BY tenant_id;

-- name: set_back_schedulers
-- What waits or is leased keeps the time that it had left. A job that nobody has touched and that its caller put off is
-- due at the time that the caller named, so that stays.
UPDATE notification_scheduler
SET
  lease_until = lease_until - :by,
  due_at = CASE WHEN moved_at IS NULL AND due_at > created_at THEN due_at ELSE due_at - :by END
WHERE due_at IS NOT NULL OR lease_until IS NOT NULL;

-- name: set_back_messages
-- The same, and what is uncertain or failed and may be sent once more: how long it lives, and how long ago its first
-- call was of which nobody knows. A row that was made due when its turn in line came is due later than it was made too,
-- though no caller named that time.
UPDATE outgoing_message
SET
  lease_until = lease_until - :by,
  due_at = CASE
    WHEN status <> 'Created' OR in_line OR due_at <= created_at THEN due_at - :by
    WHEN order_key IS NOT NULL AND due_at <= :was THEN due_at - :by
    ELSE due_at
  END,
  expires_at = expires_at - :by,
  settle_at = settle_at - :by,
  first_unknown_at = first_unknown_at - :by
WHERE due_at IS NOT NULL OR lease_until IS NOT NULL OR status IN ('Uncertain', 'FailedFinal');

-- name: set_back_receipts
-- Those that wait for their message.
UPDATE webhook_event SET look_at = look_at - :by, received_at = received_at - :by WHERE applied_at IS NULL;

-- name: insert_receipts
-- Each once by account and event id: what comes again was kept before (I-31). They are a microsecond apart, so that
-- those that came together keep their order.
INSERT INTO webhook_event (
  tenant_id, account, event_id, status, message_id, recipient_key_hash, provider_message_id, signal, happened_at, raw,
  received_at, look_at
)
SELECT
  :tenant_id, g.account, g.event_id, g.status, g.message_id, g.recipient_key_hash, g.provider_message_id, g.signal,
  g.happened_at, g.raw, now() + g.after, now()
FROM {events:
  account text, event_id text, status text, message_id guid, recipient_key_hash text, provider_message_id text,
  signal text, happened_at instant, raw text, after duration
} AS g
WHERE true
ORDER BY g.account, g.event_id
ON CONFLICT DO NOTHING;

-- name: lock_waiting_receipts
-- The head of the line. Two who apply at once take different ones.
SELECT
  e.account, e.event_id, e.status, e.provider_message_id, e.signal, e.tenant_id, e.message_id, e.recipient_key_hash,
  e.received_at
FROM webhook_event AS e
WHERE e.applied_at IS NULL AND e.look_at <= now()
ORDER BY e.look_at, e.received_at
LIMIT :limit
FOR UPDATE SKIP LOCKED;

-- name: find_rows_of_receipts
-- By our own key, or by the provider's id of one of its attempts. A row that is yet to be called cannot have been
-- received, so a receipt about it waits.
SELECT g.place, o.bucket, o.id
FROM {events:
  tenant_id text, account text, message_id guid, key_hash text, provider_message_id text, place place
} AS g
JOIN outgoing_key AS k ON k.tenant_id = g.tenant_id AND k.message_id = g.message_id
JOIN outgoing_message AS o ON o.bucket = k.bucket AND o.id = k.outgoing_id AND (o.attempts > 0 OR o.due_at IS NULL)
WHERE substr(k.rk, 1, 32) = g.key_hash
UNION ALL
SELECT g.place, o.bucket, o.id
FROM {events:
  tenant_id text, account text, message_id guid, key_hash text, provider_message_id text, place place
} AS g
JOIN delivery_attempt AS d
  ON
    d.tenant_id = g.tenant_id AND d.account = g.account AND d.provider_message_id = g.provider_message_id
    AND d.provider_message_id IS NOT NULL
JOIN outgoing_message AS o ON o.bucket = d.bucket AND o.id = d.outgoing_id AND (o.attempts > 0 OR o.due_at IS NULL);

-- name: mark_applied
-- In the transaction that moved their rows. What a recipient answered is found by the destination from then on.
UPDATE webhook_event AS e
SET applied_at = now(), subject = g.subject
FROM {events: tenant_id text, account text, event_id text, subject text} AS g
WHERE e.tenant_id = g.tenant_id AND e.account = g.account AND e.event_id = g.event_id;

-- name: put_aside
-- Where more receipts wait for a row than can be looked at every time: those that were looked at are looked at again
-- when they have waited for twice as long.
UPDATE webhook_event AS e
SET
  look_at = now() + CASE
    WHEN now() - e.received_at < CAST(:shortest AS interval) THEN CAST(:shortest AS interval)
    WHEN now() - e.received_at > CAST(:longest AS interval) THEN CAST(:longest AS interval)
    ELSE now() - e.received_at
  END
FROM {events: tenant_id text, account text, event_id text} AS g
WHERE e.tenant_id = g.tenant_id AND e.account = g.account AND e.event_id = g.event_id;

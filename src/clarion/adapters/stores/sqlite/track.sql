-- name: insert_events
-- Every event once, by account and event id: what comes again was kept before (I-31). The look-up spares a repeat every
-- write.
INSERT INTO webhook_event (
  tenant_id, account, event_id, status, message_id, recipient_key_hash, provider_message_id, happened_at, raw,
  received_at, look_at
)
SELECT
  :tenant_id, g.value ->> 'account', g.value ->> 'event_id', g.value ->> 'status', g.value ->> 'message_id',
  g.value ->> 'recipient_key_hash', g.value ->> 'provider_message_id', g.value ->> 'happened_at', g.value ->> 'raw',
  clarion_now(), 0
FROM json_each(:events) AS g
WHERE NOT EXISTS (
  SELECT 1
  FROM webhook_event AS e
  WHERE e.tenant_id = :tenant_id AND e.account = g.value ->> 'account' AND e.event_id = g.value ->> 'event_id'
)
ORDER BY g.value ->> 'account', g.value ->> 'event_id', g.key
ON CONFLICT (tenant_id, account, event_id) DO NOTHING
RETURNING event_id;

-- name: find_waiting_events
-- Those that wait, in the order of their line, each with the row that it is about: by our key, or by the provider's id
-- of one of its attempts. A row that is still to be sent cannot have been received, so its event waits on.
SELECT w.tenant_id, w.account, w.event_id, w.status, w.provider_message_id, o.id AS row_id
FROM (
  SELECT
    e.tenant_id, e.account, e.event_id, e.status, e.provider_message_id, e.look_at, e.received_at,
    (
      SELECT min(found.id)
      FROM (
        SELECT m.id
        FROM outgoing_message AS m
        CROSS JOIN address_version AS a ON a.id = m.address_id
        WHERE m.tenant_id = e.tenant_id AND m.message_id = e.message_id AND a.key_hash = e.recipient_key_hash
        UNION ALL
        SELECT d.outgoing_id
        FROM delivery_attempt AS d
        WHERE d.tenant_id = e.tenant_id AND d.account = e.account AND d.provider_message_id = e.provider_message_id
      ) AS found
    ) AS row_id
  FROM webhook_event AS e
  WHERE e.applied_at IS NULL AND e.look_at >= 0
  ORDER BY e.look_at, e.received_at
  LIMIT :limit
) AS w
LEFT JOIN outgoing_message AS o ON o.id = w.row_id AND (o.attempts > 0 OR o.due_at IS NULL)
ORDER BY w.look_at, w.received_at;

-- name: mark_applied
-- In the transaction that moved their rows.
UPDATE webhook_event
SET applied_at = clarion_now()
FROM json_each(:events) AS g
WHERE
  webhook_event.tenant_id = +(g.value ->> 0) AND webhook_event.account = +(g.value ->> 1)
  AND webhook_event.event_id = +(g.value ->> 2);

-- name: send_to_the_end
-- Those whose row is not known yet go to the end of the line, so that they keep nobody behind them waiting.
UPDATE webhook_event
SET look_at = clarion_now()
FROM json_each(:events) AS g
WHERE
  webhook_event.tenant_id = +(g.value ->> 0) AND webhook_event.account = +(g.value ->> 1)
  AND webhook_event.event_id = +(g.value ->> 2);

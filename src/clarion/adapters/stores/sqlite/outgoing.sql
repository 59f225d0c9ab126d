-- name: insert_outgoing_messages
-- The columns from the address on are fields of OutgoingItem, those before it what a row derives from. An item whose
-- address version or hold is not there makes no row. Materialised, because the planner would otherwise unpack the JSON
-- once for every use of a column. In the order of the set and not of the keys, because rows of one recipient that are
-- due together go out in the order of their ids; nobody else writes meanwhile, so no two callers can wait for each
-- other. Row keys as in domain.key.outgoing_rk.
WITH wanted AS MATERIALIZED (
  SELECT g.*, a.key_hash || '_' || g.channel || coalesce('_' || g.attempt_no, '') AS rk
  FROM {
    items: bucket whole, pk text, correlation_id text, traceparent text, flow_id whole, has_broadcast truth,
    hold_id whole, hold_version whole, address_id whole, recipient_id_hash text, channel text, message_id guid,
    attempt_no whole, order_key text, due_at instant, expires_at instant, uncertain_policy text, attempts_max whole,
    person_version_id whole, locale text, tz_id text, category text, place place
  } AS g
  JOIN address_version AS a
    ON
      a.id = g.address_id AND a.tenant_id = :tenant_id AND a.recipient_id_hash = g.recipient_id_hash
      AND a.channel = g.channel
  WHERE
    g.hold_id IS NULL
    OR EXISTS (
      SELECT 1
      FROM notification_scheduler AS h
      WHERE
        h.id = g.hold_id AND h.tenant_id = :tenant_id AND h.version = g.hold_version AND h.status = 'Processing'
    )
)
INSERT INTO outgoing_message (
  tenant_id, bucket, pk, rk, message_id, address_id, channel, attempt_no, flow_id, order_key, status, due_at,
  expires_at, uncertain_policy, attempts_max, person_version_id, locale, tz_id, category, has_broadcast,
  correlation_id, traceparent, created_at
)
SELECT
  :tenant_id, w.bucket, w.pk, w.rk, w.message_id, w.address_id, w.channel, w.attempt_no, w.flow_id, w.order_key,
  'Created', coalesce(w.due_at, now()), w.expires_at, w.uncertain_policy, w.attempts_max,
  w.person_version_id, w.locale, w.tz_id, w.category, w.has_broadcast, w.correlation_id, w.traceparent, now()
FROM wanted AS w
WHERE NOT EXISTS (
  SELECT 1
  FROM outgoing_message AS o
  WHERE o.tenant_id = :tenant_id AND o.bucket = w.bucket AND o.pk = w.pk AND o.rk = w.rk
)
ORDER BY w.place
ON CONFLICT (tenant_id, bucket, pk, rk) DO NOTHING
RETURNING id, bucket, pk, rk, message_id, address_id, channel, attempt_no, status, version, correlation_id;

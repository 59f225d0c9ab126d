-- name: insert_flows
-- The queues that the rows of a set will wait in: few, so nearly always there already.
INSERT INTO flow (tenant_id, lane, route, broadcast)
SELECT :tenant_id, g.value ->> 0, g.value ->> 1, g.value ->> 2
FROM json_each(:flows) AS g
WHERE NOT EXISTS (
  SELECT 1
  FROM flow AS f
  WHERE
    f.tenant_id = :tenant_id AND f.lane = g.value ->> 0 AND f.route = g.value ->> 1 AND f.broadcast = g.value ->> 2
    AND f.account = ''
)
ORDER BY g.value ->> 0, g.value ->> 1, g.value ->> 2
ON CONFLICT (tenant_id, lane, route, broadcast, account) DO NOTHING;

-- name: insert_outgoing_messages
-- One INSERT … SELECT over parents, holds, addresses and flows: what a row derives from is read where it is written. An
-- item whose parent, hold, address or flow is not there makes no row. Materialised step by step, because the planner
-- would otherwise unpack the JSON once for every use of a column. A campaign's history anchor has the campaign's guid
-- as its row key, so an item says which kind of parent it means. In the order of the set and not of the keys, because
-- rows of one recipient that are due together go out in the order of their ids; nobody else writes meanwhile, so no two
-- callers can wait for each other.
WITH given AS MATERIALIZED (
  SELECT
    g.key AS place,
    g.value ->> 0 AS pk,
    g.value ->> 1 AS of_messaging_job,
    g.value ->> 2 AS hold_id,
    g.value ->> 3 AS hold_version,
    g.value ->> 4 AS lane,
    g.value ->> 5 AS broadcast,
    g.value ->> 6 AS route,
    g.value ->> 7 AS address_id,
    g.value ->> 8 AS recipient_id_hash,
    g.value ->> 9 AS channel,
    g.value ->> 10 AS message_id,
    g.value ->> 11 AS attempt_no,
    g.value ->> 12 AS order_key,
    g.value ->> 13 AS due_at,
    g.value ->> 14 AS expires_at,
    g.value ->> 15 AS uncertain_policy
  FROM json_each(:items) AS g
),
made AS MATERIALIZED (
  SELECT
    given.place, given.pk, given.message_id, given.address_id, given.channel, given.attempt_no, given.order_key,
    given.due_at, given.expires_at, given.uncertain_policy,
    coalesce(j.bucket, m.bucket) AS bucket,
    coalesce(j.correlation_id, m.correlation_id) AS correlation_id,
    coalesce(j.traceparent, m.traceparent) AS traceparent,
    a.key_hash || '_' || given.channel || coalesce('_' || given.attempt_no, '') AS rk,
    f.id AS flow_id,
    given.broadcast <> '' AS has_broadcast
  FROM given
  LEFT JOIN notification_job AS j
    ON j.tenant_id = :tenant_id AND j.row_key = CASE WHEN given.of_messaging_job THEN NULL ELSE given.pk END
  LEFT JOIN messaging_job AS m
    ON m.tenant_id = :tenant_id AND m.guid = CASE WHEN given.of_messaging_job THEN given.pk END
  CROSS JOIN address_version AS a
    ON
      a.id = given.address_id AND a.tenant_id = :tenant_id AND a.recipient_id_hash = given.recipient_id_hash
      AND a.channel = given.channel
  CROSS JOIN flow AS f
    ON
      f.tenant_id = :tenant_id AND f.lane = given.lane AND f.route = given.route AND f.broadcast = given.broadcast
      AND f.account = ''
  WHERE
    (j.id IS NOT NULL OR m.id IS NOT NULL)
    AND (
      given.hold_id IS NULL
      OR EXISTS (
        SELECT 1
        FROM notification_scheduler AS h
        WHERE
          h.id = given.hold_id AND h.tenant_id = :tenant_id AND h.version = given.hold_version
          AND h.status = 'Processing'
      )
    )
)
INSERT INTO outgoing_message (
  tenant_id, bucket, pk, rk, message_id, address_id, channel, attempt_no, flow_id, order_key, status, due_at,
  expires_at, uncertain_policy, has_broadcast, correlation_id, traceparent, created_at
)
SELECT
  :tenant_id, bucket, pk, rk, message_id, address_id, channel, attempt_no, flow_id, order_key, 'Created',
  coalesce(due_at, clarion_now()), expires_at, uncertain_policy, has_broadcast, correlation_id, traceparent, clarion_now()
FROM made
WHERE NOT EXISTS (
  SELECT 1
  FROM outgoing_message AS o
  WHERE o.tenant_id = :tenant_id AND o.bucket = made.bucket AND o.pk = made.pk AND o.rk = made.rk
)
ORDER BY place
ON CONFLICT (tenant_id, bucket, pk, rk) DO NOTHING
RETURNING id;

-- name: read_outgoing_messages
-- One row for each item, in the order of the set. By the way the rows were made, so that an item finds the row of its
-- key even where that is another address version's; where something is missing, the columns behind say what.
SELECT
  o.id, o.bucket, o.pk, o.rk, o.message_id, o.address_id, o.channel, o.attempt_no, o.status, o.version,
  o.correlation_id, o.flow_id,
  coalesce(j.bucket, m.bucket) AS parent_bucket,
  coalesce(j.correlation_id, m.correlation_id) AS parent_correlation_id,
  a.key_hash || '_' || a.channel || coalesce('_' || (g.value ->> 11), '') AS row_key
FROM json_each(:items) AS g
LEFT JOIN notification_job AS j
  ON j.tenant_id = :tenant_id AND j.row_key = CASE WHEN g.value ->> 1 THEN NULL ELSE g.value ->> 0 END
LEFT JOIN messaging_job AS m ON m.tenant_id = :tenant_id AND m.guid = CASE WHEN g.value ->> 1 THEN g.value ->> 0 END
LEFT JOIN address_version AS a
  ON
    a.id = g.value ->> 7 AND a.tenant_id = :tenant_id AND a.recipient_id_hash = g.value ->> 8
    AND a.channel = g.value ->> 9
LEFT JOIN outgoing_message AS o
  ON
    o.tenant_id = :tenant_id AND o.bucket = coalesce(j.bucket, m.bucket) AND o.pk = g.value ->> 0
    AND o.rk = a.key_hash || '_' || a.channel || coalesce('_' || (g.value ->> 11), '')
ORDER BY g.key;

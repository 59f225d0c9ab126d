-- name: insert_flows
-- The queues that the rows of a batch will wait in: few, so nearly always there already.
INSERT INTO flow (tenant_id, lane, route, source)
SELECT :tenant_id, :lane, g.value, :source
FROM json_each(:routes) AS g
WHERE NOT EXISTS (
  SELECT 1
  FROM flow AS f
  WHERE
    f.tenant_id = :tenant_id AND f.lane = :lane AND f.route = g.value AND f.source = :source AND f.account = ''
)
ORDER BY g.value
ON CONFLICT (tenant_id, lane, route, source, account) DO NOTHING;

-- name: insert_outgoing_messages
-- One INSERT … SELECT over parent, hold, addresses and flows: what the row derives from is read where it is written. An
-- item whose parent, hold, address or flow is not there makes no row. Materialised step by step, because the planner
-- would otherwise unpack the JSON once for every use of a column, and go through the set once for each kind of parent.
WITH parent AS MATERIALIZED (
  SELECT bucket, correlation_id, traceparent
  FROM notification_job
  WHERE tenant_id = :tenant_id AND row_key = :notification_job
  UNION ALL
  SELECT bucket, correlation_id, traceparent
  FROM messaging_job
  WHERE tenant_id = :tenant_id AND guid = :messaging_job
),
given AS MATERIALIZED (
  SELECT
    g.key AS place,
    g.value ->> 'address_id' AS address_id,
    g.value ->> 'message_id' AS message_id,
    g.value ->> 'route' AS route,
    g.value ->> 'attempt_no' AS attempt_no,
    g.value ->> 'order_key' AS order_key,
    g.value ->> 'due_at' AS due_at,
    g.value ->> 'expires_at' AS expires_at
  FROM json_each(:items) AS g
),
made AS MATERIALIZED (
  SELECT
    parent.bucket, parent.correlation_id, parent.traceparent,
    given.place, given.address_id, given.message_id, given.attempt_no, given.order_key, given.due_at, given.expires_at,
    a.key_hash || '_' || a.channel || coalesce('_' || given.attempt_no, '') AS rk,
    a.channel,
    f.id AS flow_id
  FROM parent
  CROSS JOIN given
  CROSS JOIN address_version AS a ON a.id = given.address_id AND a.tenant_id = :tenant_id
  CROSS JOIN flow AS f
    ON
      f.tenant_id = :tenant_id AND f.lane = :lane AND f.route = given.route AND f.source = :source
      AND f.account = ''
  WHERE
    :hold_id IS NULL
    OR EXISTS (
      SELECT 1
      FROM notification_scheduler AS h
      WHERE h.id = :hold_id AND h.tenant_id = :tenant_id AND h.version = :hold_version AND h.status = 'Processing'
    )
)
INSERT INTO outgoing_message (
  tenant_id, bucket, pk, rk, message_id, address_id, channel, attempt_no, flow_id, order_key, status, due_at,
  expires_at, correlation_id, traceparent, created_at
)
SELECT
  :tenant_id, bucket, :pk, rk, message_id, address_id, channel, attempt_no, flow_id, order_key, 'Created',
  coalesce(due_at, clarion_now()), expires_at, correlation_id, traceparent, clarion_now()
FROM made
WHERE NOT EXISTS (
  SELECT 1
  FROM outgoing_message AS o
  WHERE o.tenant_id = :tenant_id AND o.bucket = made.bucket AND o.pk = :pk AND o.rk = made.rk
)
ORDER BY rk, place
ON CONFLICT (tenant_id, bucket, pk, rk) DO NOTHING
RETURNING id;

-- name: read_outgoing_messages
-- By the way the rows were made, so that an item finds the row of its key even where that is another address version's.
-- In the order of the batch: where no row is missing, the n-th answers the n-th item.
WITH parent AS MATERIALIZED (
  SELECT bucket FROM notification_job WHERE tenant_id = :tenant_id AND row_key = :notification_job
  UNION ALL
  SELECT bucket FROM messaging_job WHERE tenant_id = :tenant_id AND guid = :messaging_job
)
SELECT
  o.id, o.bucket, o.pk, o.rk, o.message_id, o.address_id, o.channel, o.attempt_no, o.status, o.version,
  o.correlation_id
FROM parent
CROSS JOIN json_each(:items) AS g
CROSS JOIN address_version AS a ON a.id = g.value ->> 'address_id' AND a.tenant_id = :tenant_id
CROSS JOIN outgoing_message AS o
  ON
    o.tenant_id = :tenant_id AND o.bucket = parent.bucket AND o.pk = :pk
    AND o.rk = a.key_hash || '_' || a.channel || coalesce('_' || (g.value ->> 'attempt_no'), '')
ORDER BY g.key;

-- name: explain_missing_messages
-- Only when a row is missing after the insert: which of the things that it derives from is not there?
SELECT
  EXISTS (
    SELECT 1 FROM notification_job WHERE tenant_id = :tenant_id AND row_key = :notification_job
    UNION ALL
    SELECT 1 FROM messaging_job WHERE tenant_id = :tenant_id AND guid = :messaging_job
  ) AS has_parent,
  :hold_id IS NULL
  OR EXISTS (
    SELECT 1
    FROM notification_scheduler AS h
    WHERE h.id = :hold_id AND h.tenant_id = :tenant_id AND h.version = :hold_version AND h.status = 'Processing'
  ) AS is_held,
  (
    SELECT g.key
    FROM json_each(:items) AS g
    WHERE NOT EXISTS (
      SELECT 1 FROM address_version AS a WHERE a.id = g.value ->> 'address_id' AND a.tenant_id = :tenant_id
    )
    ORDER BY g.key
    LIMIT 1
  ) AS first_without_address;

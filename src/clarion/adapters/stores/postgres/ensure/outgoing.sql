-- name: insert_flows
-- The flows that the batch's routes need; a handful at most, and after a campaign's first batch none is missing, so
-- nobody waits here for another batch's commit. Sorted, as every insert is.
INSERT INTO flow (tenant_id, lane, route, source)
SELECT $1, $2, g.route, $3
FROM unnest($4::text[]) AS g (route)
WHERE (
  SELECT f.id
  FROM flow AS f
  WHERE f.tenant_id = $1 AND f.lane = $2 AND f.route = g.route AND f.source = $3 AND f.account = ''
) IS NULL
ORDER BY g.route
ON CONFLICT DO NOTHING;

-- name: insert_outgoing_messages
-- The hot path: arrays instead of JSON, and one statement from addresses to rows. The parent gives bucket and
-- correlation, the address version gives channel and key hash (so no cryptography per row), the flow its id. The
-- scheduler row is locked FOR SHARE only if a row is missing: a repeat must write nothing and a lock is a write, while
-- a cancel must wait for those who insert and be seen by those who come after it. The conflict's target spares a probe
-- of the primary key for each row. Row keys as in domain.key.outgoing_rk.
WITH parent AS MATERIALIZED (
  SELECT j.bucket, j.correlation_id, j.traceparent
  FROM notification_job AS j
  WHERE j.tenant_id = $1 AND j.row_key = $2 AND $3::uuid IS NULL
  UNION ALL
  SELECT j.bucket, j.correlation_id, j.traceparent
  FROM messaging_job AS j
  WHERE j.tenant_id = $1 AND j.guid = $3::uuid
), wanted AS MATERIALIZED (
  SELECT
    p.bucket, p.correlation_id, p.traceparent, a.channel, g.*,
    concat_ws('_', a.key_hash, a.channel, g.attempt_no) AS rk
  FROM unnest(
    $4::bigint[], $5::uuid[], $6::text[], $7::smallint[], $8::text[], $9::timestamptz[], $10::timestamptz[]
  ) WITH ORDINALITY AS g (address_id, message_id, route, attempt_no, order_key, due_at, expires_at, place)
  CROSS JOIN parent AS p
  CROSS JOIN LATERAL (
    SELECT found.channel, found.key_hash
    FROM address_version AS found
    WHERE found.id = g.address_id AND found.tenant_id = $1
    LIMIT 1
  ) AS a
), missing AS MATERIALIZED (
  SELECT w.*
  FROM wanted AS w
  WHERE (
    SELECT o.id
    FROM outgoing_message AS o
    WHERE o.tenant_id = $1 AND o.bucket = w.bucket AND o.pk = $2 AND o.rk = w.rk
  ) IS NULL
), held AS MATERIALIZED (
  SELECT s.id
  FROM notification_scheduler AS s
  WHERE
    s.tenant_id = $1 AND s.id = $13::bigint AND s.version = $14::integer AND s.status = 'Processing'
    AND EXISTS (SELECT FROM missing)
  FOR SHARE
)
INSERT INTO outgoing_message (
  tenant_id, bucket, pk, rk, message_id, address_id, channel, attempt_no, flow_id, order_key, due_at, expires_at,
  correlation_id, traceparent
)
SELECT
  $1, m.bucket, $2, m.rk, m.message_id, m.address_id, m.channel, m.attempt_no, f.id, m.order_key,
  coalesce(m.due_at, now()), m.expires_at, m.correlation_id, m.traceparent
FROM missing AS m
CROSS JOIN LATERAL (
  SELECT found.id
  FROM flow AS found
  WHERE
    found.tenant_id = $1 AND found.lane = $11 AND found.route = m.route AND found.source = $12 AND found.account = ''
  LIMIT 1
) AS f
WHERE $13::bigint IS NULL OR EXISTS (SELECT FROM held)
ORDER BY m.rk, m.place
ON CONFLICT (tenant_id, bucket, pk, rk) DO NOTHING
RETURNING rk;

-- name: read_outgoing_messages
-- A statement of its own, for the loser of a race. It answers by place in the batch, because two items may name
-- versions of one address and so one row. LIMIT keeps the look-ups look-ups.
WITH parent AS MATERIALIZED (
  SELECT j.bucket FROM notification_job AS j WHERE j.tenant_id = $1 AND j.row_key = $2 AND $3::uuid IS NULL
  UNION ALL
  SELECT j.bucket FROM messaging_job AS j WHERE j.tenant_id = $1 AND j.guid = $3::uuid
)
SELECT g.place, o.*
FROM unnest($4::bigint[], $5::smallint[]) WITH ORDINALITY AS g (address_id, attempt_no, place)
CROSS JOIN parent AS p
CROSS JOIN LATERAL (
  SELECT found.channel, found.key_hash
  FROM address_version AS found
  WHERE found.id = g.address_id AND found.tenant_id = $1
  LIMIT 1
) AS a
CROSS JOIN LATERAL (
  SELECT
    found.id, found.bucket, found.rk, found.message_id, found.address_id, found.channel, found.attempt_no,
    found.status, found.version, found.correlation_id
  FROM outgoing_message AS found
  WHERE
    found.tenant_id = $1 AND found.bucket = p.bucket AND found.pk = $2
    AND found.rk = concat_ws('_', a.key_hash, a.channel, g.attempt_no)
  LIMIT 1
) AS o;

-- name: explain_missing_messages
-- Asked only when a row is neither there nor made: which of its conditions does not hold. Not part of the insert, which
-- would have to carry it for every batch that has nothing wrong.
SELECT
  EXISTS (
    SELECT FROM notification_job AS j WHERE j.tenant_id = $1 AND j.row_key = $2 AND $3::uuid IS NULL
  ) OR EXISTS (
    SELECT FROM messaging_job AS j WHERE j.tenant_id = $1 AND j.guid = $3::uuid
  ) AS has_parent,
  EXISTS (
    SELECT
    FROM notification_scheduler AS s
    WHERE s.tenant_id = $1 AND s.id = $5::bigint AND s.version = $6::integer AND s.status = 'Processing'
  ) AS holds,
  (
    SELECT g.address_id
    FROM unnest($4::bigint[]) WITH ORDINALITY AS g (address_id, place)
    WHERE (SELECT a.id FROM address_version AS a WHERE a.id = g.address_id AND a.tenant_id = $1) IS NULL
    ORDER BY g.place
    LIMIT 1
  ) AS unknown_address;

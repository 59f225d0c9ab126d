-- name: insert_flows
-- The flows that the set's rows need, and the gates of their broadcasts; a handful at most, and after a campaign's first
-- set none is missing, so nobody waits here for another's commit. A broadcast has its row before it has messages, so that
-- a pause always has something to lock. Sorted, as every insert is.
WITH gate AS (
  INSERT INTO broadcast (tenant_id, broadcast)
  SELECT $1, g.broadcast
  FROM (SELECT DISTINCT d.broadcast FROM unnest($4::text[]) AS d (broadcast) WHERE d.broadcast <> '') AS g
  WHERE (SELECT s.broadcast FROM broadcast AS s WHERE s.tenant_id = $1 AND s.broadcast = g.broadcast) IS NULL
  ORDER BY g.broadcast
  ON CONFLICT DO NOTHING
)
INSERT INTO flow (tenant_id, lane, route, broadcast)
SELECT $1, g.lane, g.route, g.broadcast
FROM unnest($2::text[], $3::text[], $4::text[]) AS g (lane, route, broadcast)
WHERE (
  SELECT f.id
  FROM flow AS f
  WHERE f.tenant_id = $1 AND f.lane = g.lane AND f.route = g.route AND f.broadcast = g.broadcast AND f.account = ''
) IS NULL
ORDER BY g.lane, g.route, g.broadcast
ON CONFLICT DO NOTHING;

-- name: insert_outgoing_messages
-- The hot path: arrays instead of JSON, and one statement from addresses to rows. What rows share (parents, flows,
-- holds) comes once and is looked up once; a row refers to it by its place. The parent gives bucket and correlation,
-- the address version gives channel and key hash (so no cryptography per row). A scheduler row is locked FOR SHARE only
-- if a row of its is missing: a repeat must write nothing and a lock is a write, while a cancel must wait for those who
-- insert and be seen by those who come after it. A key that another transaction has made since then is a violation,
-- which the caller answers by looking again: that is rare, and to be ready for it in every row is not free. Row keys as
-- in domain.key.outgoing_rk. Messages get their ids in the order asked, because those of one recipient go out in the
-- order of their ids; keys are inserted in their own order, so that two callers cannot deadlock. Counters last, as
-- everywhere, and only of flows with a broadcast; they ask for the keys, so that nobody waits for a key who has a counter.
WITH parent AS MATERIALIZED (
  SELECT
    array_agg(j.bucket ORDER BY g.place) AS buckets,
    array_agg(j.correlation_id ORDER BY g.place) AS correlations,
    array_agg(j.traceparent ORDER BY g.place) AS traces
  FROM unnest($2::text[], $3::uuid[]) WITH ORDINALITY AS g (pk, guid, place)
  LEFT JOIN LATERAL (
    SELECT found.bucket, found.correlation_id, found.traceparent
    FROM notification_job AS found
    WHERE found.tenant_id = $1 AND found.row_key = g.pk AND g.guid IS NULL
    UNION ALL
    SELECT found.bucket, found.correlation_id, found.traceparent
    FROM messaging_job AS found
    WHERE found.tenant_id = $1 AND found.guid = g.guid
    LIMIT 1
  ) AS j ON true
), road AS MATERIALIZED (
  SELECT array_agg(f.id ORDER BY g.place) AS flows
  FROM unnest($4::text[], $5::text[], $6::text[]) WITH ORDINALITY AS g (lane, route, broadcast, place)
  LEFT JOIN LATERAL (
    SELECT found.id
    FROM flow AS found
    WHERE
      found.tenant_id = $1 AND found.lane = g.lane AND found.route = g.route AND found.broadcast = g.broadcast
      AND found.account = ''
    LIMIT 1
  ) AS f ON true
), wanted AS MATERIALIZED (
  SELECT
    a.channel, g.*, ($2::text[])[g.parent] AS pk, ((SELECT buckets FROM parent))[g.parent] AS bucket,
    concat_ws('_', a.key_hash, a.channel, g.attempt_no) AS rk
  FROM unnest(
    $9::text::integer[], $10::text::integer[], $11::text::integer[], $12::text::bigint[], $13::text::text[],
    $14::text::text[], $15::text::uuid[], $16::text::smallint[], $17::text::text[], $18::text::timestamptz[],
    $19::text::timestamptz[], $20::text::text[]
  ) WITH ORDINALITY AS g (
    parent, road, hold, address_id, recipient_id_hash, road_channel, message_id, attempt_no, order_key, due_at,
    expires_at, uncertain_policy, place
  )
  CROSS JOIN LATERAL (
    SELECT found.channel, found.key_hash
    FROM address_version AS found
    WHERE
      found.id = g.address_id AND found.tenant_id = $1 AND found.recipient_id_hash = g.recipient_id_hash
      AND found.channel = g.road_channel
    LIMIT 1
  ) AS a
), missing AS MATERIALIZED (
  SELECT w.*
  FROM wanted AS w
  WHERE w.bucket IS NOT NULL AND (
    SELECT k.outgoing_id
    FROM outgoing_key AS k
    WHERE k.tenant_id = $1 AND k.bucket = w.bucket AND k.pk = w.pk AND k.rk = w.rk
  ) IS NULL
), held AS MATERIALIZED (
  SELECT array_agg(s.id IS NOT NULL ORDER BY g.place) AS stands
  FROM unnest($7::bigint[], $8::integer[]) WITH ORDINALITY AS g (id, version, place)
  LEFT JOIN LATERAL (
    SELECT found.id
    FROM notification_scheduler AS found
    WHERE
      found.id = g.id AND found.version = g.version AND found.tenant_id = $1 AND found.status = 'Processing'
      AND g.place = ANY ((SELECT array_agg(DISTINCT m.hold) FROM missing AS m)::bigint[])
    LIMIT 1
    FOR SHARE
  ) AS s ON true
), made AS (
  INSERT INTO outgoing_message (
    tenant_id, bucket, pk, rk, message_id, address_id, channel, attempt_no, flow_id, order_key, due_at, expires_at,
    uncertain_policy, has_broadcast, correlation_id, traceparent
  )
  SELECT
    $1, m.bucket, m.pk, m.rk, m.message_id, m.address_id, m.channel, m.attempt_no,
    ((SELECT flows FROM road))[m.road], m.order_key, coalesce(m.due_at, now()), m.expires_at, m.uncertain_policy,
    ($6::text[])[m.road] <> '', ((SELECT correlations FROM parent))[m.parent], ((SELECT traces FROM parent))[m.parent]
  FROM (
    SELECT DISTINCT ON (d.bucket, d.pk, d.rk) d.*
    FROM missing AS d
    WHERE d.hold IS NULL OR ((SELECT stands FROM held))[d.hold]
    ORDER BY d.bucket, d.pk, d.rk, d.place
  ) AS m
  ORDER BY m.place
  RETURNING id, bucket, pk, rk, message_id, address_id, channel, attempt_no, correlation_id, flow_id, has_broadcast
), keyed AS (
  INSERT INTO outgoing_key (tenant_id, bucket, pk, rk, message_id, outgoing_id)
  SELECT $1, m.bucket, m.pk, m.rk, m.message_id, m.id
  FROM made AS m
  ORDER BY m.bucket, m.pk, m.rk
  RETURNING outgoing_id
), counted AS (
  INSERT INTO flow_count AS c (tenant_id, flow_id, status, reason_class, n)
  SELECT $1, m.flow_id, 'Created', '', count(*)
  FROM made AS m
  WHERE m.has_broadcast AND (SELECT count(*) FROM keyed) > 0
  GROUP BY m.flow_id
  ORDER BY m.flow_id
  ON CONFLICT (tenant_id, flow_id, status, reason_class) DO UPDATE SET n = c.n + excluded.n
)
SELECT id, bucket, pk, rk, message_id, address_id, channel, attempt_no, correlation_id FROM made;

-- name: read_outgoing_messages
-- A statement of its own, for the loser of a race, and only for rows that the insert did not make. It answers by place,
-- because two items may name versions of one address and so one row, and also for items without a row, so that what
-- stands in their way is known: no parent, no such address, or a hold that is lost. LIMIT keeps the look-ups look-ups.
WITH parent AS MATERIALIZED (
  SELECT array_agg(j.bucket ORDER BY g.place) AS buckets, array_agg(j.correlation_id ORDER BY g.place) AS correlations
  FROM unnest($2::text[], $3::uuid[]) WITH ORDINALITY AS g (pk, guid, place)
  LEFT JOIN LATERAL (
    SELECT found.bucket, found.correlation_id
    FROM notification_job AS found
    WHERE found.tenant_id = $1 AND found.row_key = g.pk AND g.guid IS NULL
    UNION ALL
    SELECT found.bucket, found.correlation_id
    FROM messaging_job AS found
    WHERE found.tenant_id = $1 AND found.guid = g.guid
    LIMIT 1
  ) AS j ON true
), wanted AS MATERIALIZED (
  SELECT
    g.place, ($2::text[])[g.parent] AS pk, ((SELECT buckets FROM parent))[g.parent] AS bucket,
    ((SELECT correlations FROM parent))[g.parent] AS parent_correlation_id,
    CASE WHEN a.key_hash IS NOT NULL THEN concat_ws('_', a.key_hash, a.channel, g.attempt_no) END AS rk
  FROM unnest($4::integer[], $5::bigint[], $6::text[], $7::text[], $8::smallint[]) WITH ORDINALITY AS g (
    parent, address_id, recipient_id_hash, channel, attempt_no, place
  )
  LEFT JOIN LATERAL (
    SELECT found.channel, found.key_hash
    FROM address_version AS found
    WHERE
      found.id = g.address_id AND found.tenant_id = $1 AND found.recipient_id_hash = g.recipient_id_hash
      AND found.channel = g.channel
    LIMIT 1
  ) AS a ON true
)
SELECT
  w.bucket, w.pk, w.rk, w.parent_correlation_id, o.id, o.message_id, o.address_id, o.channel, o.attempt_no, o.status,
  o.version, o.correlation_id
FROM wanted AS w
LEFT JOIN LATERAL (
  SELECT found.outgoing_id
  FROM outgoing_key AS found
  WHERE found.tenant_id = $1 AND found.bucket = w.bucket AND found.pk = w.pk AND found.rk = w.rk
  LIMIT 1
) AS k ON true
LEFT JOIN LATERAL (
  SELECT
    found.id, found.message_id, found.address_id, found.channel, found.attempt_no, found.status, found.version,
    found.correlation_id
  FROM outgoing_message AS found
  WHERE found.bucket = w.bucket AND found.id = k.outgoing_id
  LIMIT 1
) AS o ON true
ORDER BY w.place;

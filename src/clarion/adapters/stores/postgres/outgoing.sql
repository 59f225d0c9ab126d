-- name: insert_outgoing_messages
-- The hot path: arrays instead of JSON, and one statement from addresses to rows. A parameter that is named like a
-- field of OutgoingItem is the array of that field. What rows share (parents, flows, holds) comes once, and a row
-- refers to it by its place. The address version gives channel and key hash, so that no row costs any cryptography. A
-- scheduler row is locked FOR SHARE only if a row of its is missing: a repeat must write nothing, and a lock is a
-- write; but a cancel must wait for those who insert, and be seen by those who come after it. A key that another
-- transaction has made since we looked is a violation, which the caller answers by looking again: that is rare, and ON
-- CONFLICT would cost something for every row. Row keys as in domain.key.outgoing_rk. Messages get their ids in the
-- order asked, because those of one recipient go out in the order of their ids; keys are inserted in their own order,
-- so that two callers cannot deadlock. Counters come last, as everywhere, and only of flows with a broadcast; they wait
-- for the keys, so that nobody holds a counter while it waits for a key.
WITH wanted AS MATERIALIZED (
  SELECT
    a.channel, g.*, (:pks::text[])[g.parent] AS pk, (:buckets::integer[])[g.parent] AS bucket,
    concat_ws('_', a.key_hash, a.channel, g.attempt_no) AS rk
  FROM unnest(
    :parents::text::integer[], :flows::text::bigint[], :broadcast_marks::text::boolean[], :holds::text::integer[],
    :address_id::text::bigint[], :recipient_id_hash::text::text[], :channel::text::text[], :message_id::text::uuid[],
    :attempt_no::text::smallint[], :order_key::text::text[], :due_at::text::timestamptz[],
    :expires_at::text::timestamptz[], :uncertain_policy::text::text[], :attempts_max::text::smallint[],
    :person_version_id::text::bigint[], :locale::text::text[], :tz_id::text::text[],
    :category::text::text[]
  ) WITH ORDINALITY AS g (
    parent, flow_id, has_broadcast, hold, address_id, recipient_id_hash, asked_channel, message_id, attempt_no,
    order_key, due_at, expires_at, uncertain_policy, attempts_max, person_version_id, locale, tz_id, category, place
  )
  CROSS JOIN LATERAL (
    SELECT found.channel, found.key_hash
    FROM address_version AS found
    WHERE
      found.id = g.address_id AND found.tenant_id = :tenant_id AND found.recipient_id_hash = g.recipient_id_hash
      AND found.channel = g.asked_channel
    LIMIT 1
  ) AS a
), missing AS MATERIALIZED (
  SELECT w.*
  FROM wanted AS w
  WHERE (
    SELECT k.outgoing_id
    FROM outgoing_key AS k
    WHERE k.tenant_id = :tenant_id AND k.bucket = w.bucket AND k.pk = w.pk AND k.rk = w.rk
  ) IS NULL
), held AS MATERIALIZED (
  SELECT array_agg(s.id IS NOT NULL ORDER BY g.place) AS stands
  FROM unnest(:hold_ids::bigint[], :hold_versions::integer[]) WITH ORDINALITY AS g (id, version, place)
  LEFT JOIN LATERAL (
    SELECT found.id
    FROM notification_scheduler AS found
    WHERE
      found.id = g.id AND found.version = g.version AND found.tenant_id = :tenant_id AND found.status = 'Processing'
      AND g.place = ANY ((SELECT array_agg(DISTINCT m.hold) FROM missing AS m)::bigint[])
    LIMIT 1
    FOR SHARE
  ) AS s ON true
), made AS (
  INSERT INTO outgoing_message (
    tenant_id, bucket, pk, rk, message_id, address_id, channel, attempt_no, flow_id, order_key, due_at, expires_at,
    uncertain_policy, attempts_max, person_version_id, locale, tz_id, category, has_broadcast, correlation_id,
    traceparent
  )
  SELECT
    :tenant_id, m.bucket, m.pk, m.rk, m.message_id, m.address_id, m.channel, m.attempt_no, m.flow_id, m.order_key,
    coalesce(m.due_at, now()), m.expires_at, m.uncertain_policy, m.attempts_max, m.person_version_id, m.locale,
    m.tz_id, m.category, m.has_broadcast, (:correlation_ids::text[])[m.parent], (:traceparents::text[])[m.parent]
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
  SELECT :tenant_id, m.bucket, m.pk, m.rk, m.message_id, m.id
  FROM made AS m
  ORDER BY m.bucket, m.pk, m.rk
  RETURNING outgoing_id
), counted AS (
  INSERT INTO flow_count AS c (tenant_id, flow_id, status, reason_class, n)
  SELECT :tenant_id, m.flow_id, 'Created', '', count(*)
  FROM made AS m
  WHERE m.has_broadcast AND (SELECT count(*) FROM keyed) > 0
  GROUP BY m.flow_id
  ORDER BY m.flow_id
  ON CONFLICT (tenant_id, flow_id, status, reason_class) DO UPDATE SET n = c.n + excluded.n
)
SELECT id, bucket, pk, rk, message_id, address_id, channel, attempt_no, correlation_id FROM made;

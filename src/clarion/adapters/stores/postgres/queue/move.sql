-- name: move_outgoing
-- Every move that is neither claim nor record, of rows that this transaction has locked and judged. What a row was is
-- given, since an UPDATE returns only what it is now. The lines of the story come apart from the moves ($19 on), for
-- several receipts may lift a row by several steps at once. Whatever is closed makes one row due that was in line behind
-- it ($15, $16); counters last and sorted.
WITH moved AS (
  UPDATE outgoing_message AS o
  SET
    status = g.to_status,
    version = o.version + g.steps,
    due_at = CASE WHEN g.to_status = 'RetryReady' THEN now() + g.delay END,
    lease_until = NULL,
    settle_at = CASE WHEN g.to_status = 'Uncertain' AND g.was = 'Sending' THEN now() END,
    cancel_at = CASE WHEN g.called_off IS NULL THEN o.cancel_at ELSE now() END,
    cancel_actor = coalesce(g.called_off, o.cancel_actor),
    in_line = false,
    first_unproven_at = coalesce(o.first_unproven_at, g.first_unproven_at),
    flow_id = coalesce(
      (
        SELECT p.id
        FROM flow AS f
        CROSS JOIN LATERAL (
          SELECT found.id
          FROM flow AS found
          WHERE
            found.tenant_id = f.tenant_id AND found.lane = f.lane AND found.route = f.route
            AND found.source = f.source AND found.account = g.pin
          LIMIT 1
        ) AS p
        WHERE f.id = g.was_flow AND g.pin IS NOT NULL
      ),
      o.flow_id
    ),
    replay_authorised = g.authorised,
    replays = o.replays + g.replays,
    not_called = CASE WHEN g.forgiven THEN 0 ELSE o.not_called END,
    provider_message_id = coalesce(o.provider_message_id, g.provider_message_id),
    reason = g.reason,
    reason_class = ''
  FROM unnest(
    $1::integer[], $2::bigint[], $3::text[], $4::bigint[], $5::text[], $6::text[], $7::integer[], $8::interval[],
    $9::text[], $10::text[], $11::timestamptz[], $12::boolean[], $13::smallint[], $14::text[], $17::text[],
    $18::boolean[]
  ) AS g (
    bucket, id, was, was_flow, was_class, to_status, steps, delay, reason, pin, first_unproven_at, authorised, replays,
    provider_message_id, called_off, forgiven
  )
  WHERE o.bucket = g.bucket AND o.id = g.id
  RETURNING o.tenant_id, o.has_source, o.flow_id, o.status, g.was, g.was_flow, g.was_class
), told AS (
  INSERT INTO transition (tenant_id, bucket, outgoing_id, version, from_status, to_status, actor, reason)
  SELECT g.tenant_id, g.bucket, g.id, g.version, g.from_status, g.to_status, g.actor, g.reason
  FROM unnest(
    $19::text[], $20::integer[], $21::bigint[], $22::integer[], $23::text[], $24::text[], $25::text[], $26::text[]
  ) AS g (tenant_id, bucket, id, version, from_status, to_status, reason, actor)
), woken AS MATERIALIZED (
  SELECT w.bucket, w.id
  FROM unnest($15::text[], $16::integer[]) AS c (order_key, n)
  CROSS JOIN LATERAL (
    SELECT found.bucket, found.id
    FROM outgoing_message AS found
    WHERE
      found.order_key = c.order_key AND found.due_at IS NOT NULL AND found.in_line AND found.id <> ALL ($2::bigint[])
      AND (
        SELECT
          coalesce((SELECT s.gate FROM source AS s WHERE s.tenant_id = f.tenant_id AND s.source = f.source), 'Open')
          = 'Open'
        FROM flow AS f
        WHERE f.id = found.flow_id
      )
    ORDER BY found.id
    LIMIT c.n
    FOR UPDATE SKIP LOCKED
  ) AS w
), waked AS (
  UPDATE outgoing_message AS o
  SET due_at = now(), in_line = false
  FROM woken AS w
  WHERE o.bucket = w.bucket AND o.id = w.id
)
INSERT INTO flow_count AS c (tenant_id, flow_id, status, reason_class, n)
SELECT d.tenant_id, d.flow_id, d.status, d.reason_class, sum(d.n)
FROM (
  SELECT m.tenant_id, m.flow_id, m.status, '' AS reason_class, 1 AS n FROM moved AS m WHERE m.has_source
  UNION ALL
  SELECT m.tenant_id, m.was_flow, m.was, m.was_class, -1 FROM moved AS m WHERE m.has_source
) AS d
GROUP BY d.tenant_id, d.flow_id, d.status, d.reason_class
ORDER BY d.tenant_id, d.flow_id, d.status, d.reason_class
ON CONFLICT (tenant_id, flow_id, status, reason_class) DO UPDATE SET n = c.n + excluded.n;

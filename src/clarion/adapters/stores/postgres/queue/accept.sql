-- name: accept_outgoing
-- Records results of accepted calls whose rows are still in flight under the claim that made the call: nearly all
-- results are of this kind. Of any other result nothing is written, and the answer names it. The sets come as the text
-- of arrays, because that was the fastest of the ways that were measured.
WITH accepted AS MATERIALIZED (
  SELECT g.*
  FROM unnest(
    :buckets::text::integer[], :ids::text::bigint[], :tokens::text::uuid[], :attempts::text::smallint[],
    :hashes::text::text[], :latencies::text::integer[], :provider_ids::text::text[]
  ) AS g (bucket, id, token, attempt, given_hash, latency_ms, given_pid)
), sent AS (
  UPDATE outgoing_message AS o
  SET
    status = 'SentToProvider', version = o.version + 1, lease_until = NULL, replay_authorised = false,
    provider_message_id = coalesce(o.provider_message_id, a.given_pid),
    content_hash = coalesce(o.content_hash, a.given_hash)
  FROM accepted AS a
  WHERE o.bucket = a.bucket AND o.id = a.id AND o.claim_token = a.token AND o.status = 'Sending'
  RETURNING
    o.id, o.bucket, o.tenant_id, o.version, o.flow_id, o.order_key, o.has_broadcast, o.account, o.correlation_id,
    o.traceparent, a.token, a.attempt, a.given_pid, a.given_hash, a.latency_ms
), answered AS (
  INSERT INTO delivery_attempt (
    tenant_id, bucket, outgoing_id, attempt, claim_token, account, status, provider_message_id, content_hash,
    latency_ms, correlation_id, traceparent
  )
  SELECT
    s.tenant_id, s.bucket, s.id, s.attempt, s.token, s.account, 'Accepted', s.given_pid, s.given_hash, s.latency_ms,
    s.correlation_id, s.traceparent
  FROM sent AS s
), transitions AS (
  INSERT INTO transition (tenant_id, bucket, outgoing_id, version, from_status, to_status, actor)
  SELECT s.tenant_id, s.bucket, s.id, s.version, 'Sending', 'SentToProvider', :actor FROM sent AS s
), woken AS MATERIALIZED (
  SELECT w.bucket, w.id
  FROM (SELECT DISTINCT s.order_key FROM sent AS s WHERE s.order_key IS NOT NULL) AS c
  CROSS JOIN LATERAL (
    SELECT found.bucket, found.id
    FROM outgoing_message AS found
    WHERE
      found.order_key = c.order_key AND (found.due_at IS NOT NULL OR found.lease_until IS NOT NULL) AND found.in_line
      AND found.first_unknown_at IS NULL AND NOT found.has_broadcast
    ORDER BY found.id
    LIMIT 1
    FOR UPDATE SKIP LOCKED
  ) AS w
), waked AS (
  UPDATE outgoing_message AS o
  SET due_at = now(), in_line = false
  FROM woken AS w
  WHERE o.bucket = w.bucket AND o.id = w.id
), counted AS (
  INSERT INTO flow_count AS c (tenant_id, flow_id, status, reason_class, n)
  SELECT s.tenant_id, s.flow_id, d.status, '', sum(d.n)
  FROM sent AS s
  CROSS JOIN (VALUES ('SentToProvider', 1), ('Sending', -1)) AS d (status, n)
  WHERE s.has_broadcast
  GROUP BY 1, 2, 3
  ORDER BY 1, 2, 3
  ON CONFLICT (tenant_id, flow_id, status, reason_class) DO UPDATE SET n = c.n + excluded.n
)
SELECT a.id FROM accepted AS a WHERE a.id NOT IN (SELECT s.id FROM sent AS s);

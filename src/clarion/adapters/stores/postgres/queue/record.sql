-- name: lock_and_pin
-- Before results that leave a row in doubt, or take its attempt back: locks the rows in their order, so that the record
-- sees all that was written about them, and makes the flows that rows in doubt move to, which are as theirs and pinned
-- to the account of their last claim; the statement that moves them would not see what it inserts itself. Those flows
-- are almost always there already. Sorted.
WITH locked AS MATERIALIZED (
  SELECT o.flow_id, o.account
  FROM unnest($1::integer[], $2::bigint[]) AS g (bucket, id)
  CROSS JOIN LATERAL (
    SELECT found.flow_id, found.account
    FROM outgoing_message AS found
    WHERE found.bucket = g.bucket AND found.id = g.id
    LIMIT 1
    FOR UPDATE
  ) AS o
)
INSERT INTO flow (tenant_id, lane, route, source, account)
SELECT w.tenant_id, w.lane, w.route, w.source, w.account
FROM (
  SELECT DISTINCT f.tenant_id, f.lane, f.route, f.source, l.account
  FROM locked AS l
  CROSS JOIN LATERAL (
    SELECT found.tenant_id, found.lane, found.route, found.source
    FROM flow AS found
    WHERE found.id = l.flow_id
    LIMIT 1
  ) AS f
  WHERE l.account IS NOT NULL
) AS w
WHERE (
  SELECT p.id
  FROM flow AS p
  WHERE
    p.tenant_id = w.tenant_id AND p.lane = w.lane AND p.route = w.route AND p.source = w.source
    AND p.account = w.account
) IS NULL
ORDER BY w.tenant_id, w.lane, w.route, w.source, w.account
ON CONFLICT DO NOTHING;

-- name: record_outgoing
-- What came back, in one statement. `sent` is what almost every result comes to, and does no more than it needs: the
-- call was accepted, and its row is in flight under the very claim that made it; such a row has no attempt of this
-- number yet. The other results are `given` to `ruled`, which locks their rows in their order, each in its latest
-- version, so that a result never finds a row that a receipt, a rescue or another claim is just changing, and says what
-- becomes of it: a row that is in flight or in doubt under this very claim goes where the outcome leads ($15 is the
-- state that it gives); an acceptance is evidence whoever holds the row now, and lifts one that was ever called unless
-- it is as high already; anything else only settles its own attempt. `unproven` tells whether another attempt of the
-- row may have been accepted: if none can, the row leaves the flow that it was pinned to (unless that was made so
-- lately that this statement cannot see it). Ranks are given by the caller, from the domain's table ($20).
-- A replay that was authorised for one call is so until a call was made.
-- Attempts are written by their number, and only the claim that made one may change it: what stood as unknown becomes
-- accepted, or else refused.
-- The answer is about the rows that are not in `sent`. Those and the others are two orders of locks, so a set with both
-- can meet receipts for both the other way round; the session repeats what the server then breaks off.
WITH accepted AS MATERIALIZED (
  SELECT g.*
  FROM unnest(
    $1::text::integer[], $2::text::bigint[], $3::text::uuid[], $4::text::smallint[], $5::text::text[],
    $6::text::integer[], $7::text::text[]
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
    o.id, o.bucket, o.tenant_id, o.version, o.flow_id, o.status, o.reason, o.reason_class, o.order_key, o.has_source,
    o.account, o.correlation_id, o.traceparent, a.token, a.attempt, a.given_pid, a.given_hash, a.latency_ms
), answered AS (
  INSERT INTO delivery_attempt (
    tenant_id, bucket, outgoing_id, attempt, claim_token, account, status, provider_message_id, content_hash,
    latency_ms, correlation_id, traceparent
  )
  SELECT
    s.tenant_id, s.bucket, s.id, s.attempt, s.token, s.account, 'Accepted', s.given_pid, s.given_hash, s.latency_ms,
    s.correlation_id, s.traceparent
  FROM sent AS s
), given AS MATERIALIZED (
  SELECT
    a.bucket, a.id, a.token, a.attempt, 'Accepted' AS outcome, 'SentToProvider' AS given, a.given_pid,
    NULL AS given_reason, '' AS given_class, interval '0' AS delay, a.given_hash, a.latency_ms
  FROM accepted AS a
  WHERE a.id NOT IN (SELECT s.id FROM sent AS s)
  UNION ALL
  SELECT g.bucket, g.id, g.token, g.attempt, g.outcome, g.given, NULL, g.reason, g.class, g.delay, g.hash, g.latency_ms
  FROM unnest(
    $8::text::integer[], $9::text::bigint[], $10::text::uuid[], $11::text::smallint[], $12::text::text[],
    $13::text::integer[], $14::text::text[], $15::text::text[], $16::text::text[], $17::text::text[],
    $18::text::interval[]
  ) AS g (bucket, id, token, attempt, hash, latency_ms, outcome, given, reason, class, delay)
), ruled AS MATERIALIZED (
  SELECT
    g.*, o.*, h.own, h.rank, u.unproven,
    CASE
      WHEN h.own AND o.status IN ('Sending', 'Uncertain') THEN
        CASE
          WHEN o.status = 'Uncertain' AND g.outcome = 'Unknown' THEN NULL
          WHEN g.outcome = 'NotCalled' AND g.given = 'Uncertain' AND d.in_doubt THEN 'Uncertain'
          WHEN g.given = 'FailedFinal' THEN CASE WHEN d.in_doubt THEN 'Uncertain' ELSE 'FailedFinal' END
          WHEN g.outcome = 'NotCalled' THEN 'RetryReady'
          ELSE g.given
        END
      WHEN g.outcome = 'Accepted' AND h.rank = 0 AND o.attempts > 0 THEN 'SentToProvider'
    END AS next
  FROM given AS g
  CROSS JOIN LATERAL (
    SELECT
      found.tenant_id, found.status, found.version, found.flow_id, found.claim_token, found.account, found.order_key,
      found.attempts, found.first_unproven_at, found.provider_message_id, found.content_hash, found.reason_class, found.correlation_id, found.traceparent
    FROM outgoing_message AS found
    WHERE found.bucket = g.bucket AND found.id = g.id
    LIMIT 1
    FOR UPDATE
  ) AS o
  CROSS JOIN LATERAL (
    SELECT o.claim_token = g.token AS own, coalesce(array_position($20::text[], o.status), 0) AS rank
  ) AS h
  CROSS JOIN LATERAL (
    SELECT
      CASE
        WHEN h.own AND o.status = 'Uncertain' AND g.outcome NOT IN ('Accepted', 'Unknown') THEN (
          SELECT count(*) > 0
          FROM delivery_attempt AS e
          WHERE e.bucket = g.bucket AND e.outgoing_id = g.id AND e.attempt <> g.attempt AND e.status = 'Unknown'
        )
      END AS unproven
  ) AS u
  CROSS JOIN LATERAL (SELECT o.first_unproven_at IS NOT NULL AND u.unproven IS NOT false AS in_doubt) AS d
), moved AS (
  UPDATE outgoing_message AS o
  SET
    status = coalesce(r.next, o.status),
    version = o.version + CASE WHEN r.next IS NULL THEN 0 ELSE 1 END,
    due_at = CASE WHEN r.next IS NULL THEN o.due_at WHEN r.next = 'RetryReady' THEN now() + r.delay END,
    lease_until = CASE WHEN r.next IS NULL THEN o.lease_until END,
    settle_at = CASE WHEN r.next IS NULL THEN o.settle_at WHEN r.next = 'Uncertain' AND r.given = r.next THEN now() END,
    in_line = o.in_line AND r.next IS NULL,
    attempts = o.attempts - CASE WHEN r.next IS NOT NULL AND r.outcome = 'NotCalled' THEN 1 ELSE 0 END,
    not_called = o.not_called + CASE WHEN r.next IS NOT NULL AND r.outcome = 'NotCalled' THEN 1 ELSE 0 END,
    replay_authorised = o.replay_authorised
      AND (r.next IS NULL OR r.next = 'RetryReady' AND r.outcome = 'NotCalled'),
    first_unproven_at = CASE
      WHEN r.next = 'Uncertain' AND o.first_unproven_at IS NULL THEN (
        SELECT t.at FROM transition AS t WHERE t.bucket = r.bucket AND t.outgoing_id = r.id AND t.version = r.version
      )
      WHEN r.unproven IS DISTINCT FROM false THEN o.first_unproven_at
    END,
    flow_id = CASE
      WHEN r.next = 'Uncertain' OR NOT r.unproven THEN coalesce((
        SELECT p.id
        FROM flow AS f
        CROSS JOIN LATERAL (
          SELECT found.id
          FROM flow AS found
          WHERE
            found.tenant_id = f.tenant_id AND found.lane = f.lane AND found.route = f.route
            AND found.source = f.source AND found.account = CASE WHEN r.next = 'Uncertain' THEN r.account ELSE '' END
          LIMIT 1
        ) AS p
        WHERE f.id = r.flow_id
      ), o.flow_id)
      ELSE o.flow_id
    END,
    provider_message_id = coalesce(o.provider_message_id, r.given_pid),
    content_hash = coalesce(o.content_hash, r.given_hash),
    reason = CASE WHEN r.next IS NULL THEN o.reason ELSE r.given_reason END,
    reason_class = CASE WHEN r.next IS NULL THEN o.reason_class ELSE r.given_class END
  FROM ruled AS r
  WHERE
    o.bucket = r.bucket AND o.id = r.id
    AND (
      r.next IS NOT NULL
      OR r.outcome = 'Accepted' AND r.attempts > 0 AND (
        o.provider_message_id IS NULL AND r.given_pid IS NOT NULL OR o.content_hash IS NULL AND r.given_hash IS NOT NULL
      )
    )
  RETURNING
    o.id, o.bucket, o.tenant_id, o.version, o.flow_id, o.status, o.reason, o.reason_class, o.order_key, o.has_source,
    r.next, r.status AS was, r.flow_id AS was_flow, r.reason_class AS was_class
), went AS (
  SELECT
    s.id, s.bucket, s.tenant_id, s.version, s.flow_id, s.status, s.reason, s.reason_class, s.order_key, s.has_source,
    'Sending' AS was, s.flow_id AS was_flow, '' AS was_class
  FROM sent AS s
  UNION ALL
  SELECT
    m.id, m.bucket, m.tenant_id, m.version, m.flow_id, m.status, m.reason, m.reason_class, m.order_key, m.has_source,
    m.was, m.was_flow, m.was_class
  FROM moved AS m
  WHERE m.next IS NOT NULL
), taken_back AS (
  DELETE FROM delivery_attempt
  WHERE ctid = ANY (ARRAY(
    SELECT d.ctid
    FROM ruled AS r
    CROSS JOIN LATERAL (
      SELECT found.ctid
      FROM delivery_attempt AS found
      WHERE
        found.bucket = r.bucket AND found.outgoing_id = r.id AND found.attempt = r.attempt
        AND found.claim_token = r.token
      LIMIT 1
    ) AS d
    WHERE r.own AND r.status = 'Uncertain' AND r.outcome = 'NotCalled'
  ))
), tried AS (
  INSERT INTO delivery_attempt AS d (
    tenant_id, bucket, outgoing_id, attempt, claim_token, account, status, provider_message_id, reason, content_hash,
    latency_ms, correlation_id, traceparent
  )
  SELECT
    r.tenant_id, r.bucket, r.id, r.attempt, r.token, coalesce(r.account, ''),
    CASE
      WHEN r.outcome = 'NotCalled' THEN 'Refused'
      WHEN r.outcome = 'Unknown' AND r.own AND r.rank > 0 AND (
        SELECT count(*)
        FROM delivery_attempt AS e
        WHERE e.bucket = r.bucket AND e.outgoing_id = r.id AND e.status = 'Accepted'
      ) = 0 THEN 'Accepted'
      ELSE r.outcome
    END,
    r.given_pid, r.given_reason, r.given_hash, r.latency_ms, r.correlation_id, r.traceparent
  FROM ruled AS r
  WHERE
    CASE
      WHEN r.own AND r.outcome <> 'NotCalled' THEN true
      WHEN r.own AND r.status = 'Uncertain' THEN false
      ELSE (
        SELECT d.claim_token = r.token
        FROM delivery_attempt AS d
        WHERE d.bucket = r.bucket AND d.outgoing_id = r.id AND d.attempt = r.attempt
      )
    END
  ON CONFLICT (bucket, outgoing_id, attempt) DO UPDATE
  SET
    status = CASE
      WHEN d.status <> 'Unknown' OR excluded.status = 'Unknown' THEN d.status
      WHEN excluded.status = 'Accepted' THEN 'Accepted'
      ELSE 'Refused'
    END,
    provider_message_id = coalesce(d.provider_message_id, excluded.provider_message_id),
    reason = CASE WHEN excluded.status <> 'Accepted' THEN coalesce(d.reason, excluded.reason) END,
    content_hash = coalesce(d.content_hash, excluded.content_hash),
    latency_ms = coalesce(excluded.latency_ms, d.latency_ms)
  WHERE d.claim_token = excluded.claim_token
), told AS (
  INSERT INTO transition (tenant_id, bucket, outgoing_id, version, from_status, to_status, actor, reason)
  SELECT w.tenant_id, w.bucket, w.id, w.version, w.was, w.status, $19, w.reason
  FROM went AS w
), woken AS MATERIALIZED (
  SELECT w.bucket, w.id
  FROM (
    SELECT w.order_key, count(*) AS n
    FROM went AS w
    WHERE w.order_key IS NOT NULL AND w.was IN ('Created', 'RetryReady', 'Sending') AND w.status <> 'RetryReady'
    GROUP BY w.order_key
  ) AS c
  CROSS JOIN LATERAL (
    SELECT found.bucket, found.id
    FROM outgoing_message AS found
    WHERE
      found.order_key = c.order_key AND found.due_at IS NOT NULL AND found.in_line
      AND found.id <> ALL (ARRAY(SELECT r.id FROM ruled AS r))
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
), counted AS (
  INSERT INTO flow_count AS c (tenant_id, flow_id, status, reason_class, n)
  SELECT d.tenant_id, d.flow_id, d.status, d.reason_class, sum(d.n)
  FROM (
    SELECT w.tenant_id, w.flow_id, w.status, w.reason_class, 1 AS n
    FROM went AS w
    WHERE w.has_source
    UNION ALL
    SELECT w.tenant_id, w.was_flow, w.was, w.was_class, -1
    FROM went AS w
    WHERE w.has_source
  ) AS d
  GROUP BY d.tenant_id, d.flow_id, d.status, d.reason_class
  ORDER BY d.tenant_id, d.flow_id, d.status, d.reason_class
  ON CONFLICT (tenant_id, flow_id, status, reason_class) DO UPDATE SET n = c.n + excluded.n
)
SELECT g.id, coalesce(r.next, CASE WHEN r.own THEN r.status END) AS status, r.next IS NOT NULL AS moved
FROM given AS g
LEFT JOIN ruled AS r ON r.id = g.id;

-- name: read_troubled_messages
-- What a support case says about its message; asked only for the few that open one.
SELECT o.*
FROM unnest($1::integer[], $2::bigint[]) WITH ORDINALITY AS g (bucket, id, place)
CROSS JOIN LATERAL (
  SELECT
    found.bucket, found.id, found.tenant_id, found.pk, found.rk, found.message_id, found.account, found.correlation_id
  FROM outgoing_message AS found
  WHERE found.bucket = g.bucket AND found.id = g.id
  LIMIT 1
) AS o
ORDER BY g.place;

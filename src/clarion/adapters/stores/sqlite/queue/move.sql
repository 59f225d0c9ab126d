-- name: read_rows
-- Whole rows as the queue changes them, each with all that a change may need, so that nothing more is looked up one by
-- one: its flow, and the first row that waits in line behind an open one. Where an entry says that its row comes into
-- uncertain (1): when it was claimed, which is its last line, and the flow that is pinned to its account. Where it names a
-- claim (2) that no longer holds the row: the attempts so far, and the flow that is pinned to none.
SELECT
  o.id, o.bucket, o.tenant_id, o.pk, o.rk, o.message_id, o.status, o.version, o.flow_id, o.due_at, o.lease_until,
  o.settle_at, o.expires_at, o.cancel_at, o.cancel_actor, o.claim_token, o.account, o.attempts, o.not_called,
  o.replays, o.replay_authorised, o.first_unknown_at, o.provider_message_id, o.content_hash, o.reason,
  o.reason_class, o.order_key, o.correlation_id, o.traceparent, f.broadcast,
  CASE
    WHEN o.order_key IS NOT NULL AND (o.due_at IS NOT NULL OR o.lease_until IS NOT NULL)
      THEN (
        SELECT n.id
        FROM outgoing_message AS n
        CROSS JOIN flow AS nf ON nf.id = n.flow_id
        WHERE
          n.order_key = o.order_key AND n.due_at IS NOT NULL AND n.in_line = 1 AND n.id <> o.id
          AND NOT EXISTS (
            SELECT 1
            FROM broadcast AS ns
            WHERE ns.tenant_id = nf.tenant_id AND ns.broadcast = nf.broadcast AND ns.gate <> 'Open'
          )
        ORDER BY n.id
        LIMIT 1
      )
  END AS next_id,
  CASE
    WHEN g.value ->> 1
      THEN (
        SELECT t.at
        FROM transition AS t
        WHERE t.bucket = o.bucket AND t.outgoing_id = o.id AND t.version = o.version
      )
  END AS claimed_at,
  CASE
    WHEN g.value ->> 1
      THEN (
        SELECT s.id
        FROM flow AS s
        WHERE
          s.tenant_id = f.tenant_id AND s.lane = f.lane AND s.route = f.route AND s.broadcast = f.broadcast
          AND s.account = o.account
      )
  END AS pinned_flow_id,
  CASE
    WHEN f.account = '' THEN f.id
    WHEN (o.status, o.claim_token) IS NOT ('Sending', g.value ->> 2)
      THEN (
        SELECT s.id
        FROM flow AS s
        WHERE
          s.tenant_id = f.tenant_id AND s.lane = f.lane AND s.route = f.route AND s.broadcast = f.broadcast AND s.account = ''
      )
  END AS open_flow_id,
  CASE
    WHEN g.value ->> 2 IS NOT NULL AND (o.status, o.claim_token) IS NOT ('Sending', g.value ->> 2)
      THEN (
        SELECT
          json_group_array(
            json_array(
              d.outgoing_id, d.bucket, d.tenant_id, d.attempt, d.claim_token, d.account, d.status,
              d.provider_message_id, d.reason, d.content_hash, d.latency_ms, d.correlation_id, d.traceparent
            )
          )
        FROM delivery_attempt AS d
        WHERE d.bucket = o.bucket AND d.outgoing_id = o.id
      )
  END AS tried
FROM json_each(:rows) AS g
CROSS JOIN outgoing_message AS o ON o.id = g.value ->> 0
CROSS JOIN flow AS f ON f.id = o.flow_id
ORDER BY g.key;

-- name: write_rows
-- All that a move may change, as it was decided; an entry without a status is a row in line whose turn has come.
UPDATE outgoing_message
SET
  status = coalesce(p.status, outgoing_message.status),
  due_at = coalesce(p.due_at, CASE WHEN p.status IS NULL THEN clarion_now() END),
  in_line = 0,
  version = coalesce(p.version, outgoing_message.version),
  flow_id = coalesce(p.flow_id, outgoing_message.flow_id),
  lease_until = CASE WHEN p.status IS NOT NULL THEN p.lease_until END,
  settle_at = CASE WHEN p.status IS NOT NULL THEN p.settle_at END,
  cancel_at = CASE WHEN p.status IS NULL THEN outgoing_message.cancel_at ELSE p.cancel_at END,
  cancel_actor = CASE WHEN p.status IS NULL THEN outgoing_message.cancel_actor ELSE p.cancel_actor END,
  attempts = coalesce(p.attempts, outgoing_message.attempts),
  not_called = coalesce(p.not_called, outgoing_message.not_called),
  replays = coalesce(p.replays, outgoing_message.replays),
  replay_authorised = coalesce(p.replay_authorised, outgoing_message.replay_authorised),
  first_unknown_at
  = CASE WHEN p.status IS NULL THEN outgoing_message.first_unknown_at ELSE p.first_unknown_at END,
  provider_message_id = coalesce(p.provider_message_id, outgoing_message.provider_message_id),
  content_hash = coalesce(p.content_hash, outgoing_message.content_hash),
  reason = CASE WHEN p.status IS NULL THEN outgoing_message.reason ELSE p.reason END,
  reason_class = coalesce(p.reason_class, outgoing_message.reason_class)
FROM (
  SELECT
    g.value ->> 0 AS id, g.value ->> 1 AS status, g.value ->> 2 AS version, g.value ->> 3 AS flow_id,
    g.value ->> 4 AS due_at, g.value ->> 5 AS lease_until, g.value ->> 6 AS settle_at, g.value ->> 7 AS cancel_at,
    g.value ->> 8 AS cancel_actor, g.value ->> 9 AS attempts, g.value ->> 10 AS not_called,
    g.value ->> 11 AS replays, g.value ->> 12 AS replay_authorised, g.value ->> 13 AS first_unknown_at,
    g.value ->> 14 AS provider_message_id, g.value ->> 15 AS content_hash, g.value ->> 16 AS reason,
    g.value ->> 17 AS reason_class
  FROM json_each(:rows) AS g
) AS p
WHERE outgoing_message.id = +p.id;

-- name: accept_rows
-- What nearly every batch of results is: all of them in flight and accepted. It writes only what changes then, which
-- takes half the time of the statement above.
UPDATE outgoing_message
SET
  status = 'SentToProvider',
  version = version + 1,
  lease_until = NULL,
  replay_authorised = 0,
  provider_message_id = g.value ->> 1,
  content_hash = g.value ->> 2
FROM json_each(:rows) AS g
WHERE outgoing_message.id = +(g.value ->> 0) AND status = 'Sending';

-- name: write_transitions
-- One line for every change of state (I-42); its key is the row's version, so a second line for one move is refused.
INSERT INTO transition (tenant_id, bucket, outgoing_id, version, from_status, to_status, at, actor, reason)
SELECT
  g.value ->> 0, g.value ->> 1, g.value ->> 2, g.value ->> 3, g.value ->> 4, g.value ->> 5, clarion_now(),
  g.value ->> 6, g.value ->> 7
FROM json_each(:lines) AS g;

-- name: write_attempts
-- New ones, and those of unknown outcome of which more is known now.
INSERT INTO delivery_attempt (
  outgoing_id, bucket, tenant_id, attempt, claim_token, account, status, provider_message_id, reason, content_hash,
  latency_ms, correlation_id, traceparent, at
)
SELECT
  g.value ->> 0, g.value ->> 1, g.value ->> 2, g.value ->> 3, g.value ->> 4, g.value ->> 5, g.value ->> 6,
  g.value ->> 7, g.value ->> 8, g.value ->> 9, g.value ->> 10, g.value ->> 11, g.value ->> 12, clarion_now()
FROM json_each(:attempts) AS g
WHERE true
ON CONFLICT (bucket, outgoing_id, attempt) DO UPDATE
SET
  status = excluded.status,
  provider_message_id = excluded.provider_message_id,
  reason = excluded.reason,
  content_hash = excluded.content_hash,
  latency_ms = excluded.latency_ms;

-- name: delete_attempts
-- Calls that the rescuer took for unknown and that a late reply shows were never made: such a claim leaves no attempt.
DELETE FROM delivery_attempt
WHERE
  (bucket, outgoing_id, attempt) IN (SELECT g.value ->> 0, g.value ->> 1, g.value ->> 2 FROM json_each(:attempts) AS g);

-- name: insert_pinned_flows
-- The flow of the same names that is pinned to an account, the first time that one of its outcomes is uncertain.
INSERT INTO flow (tenant_id, lane, route, broadcast, account)
SELECT f.tenant_id, f.lane, f.route, f.broadcast, g.value ->> 1
FROM json_each(:flows) AS g
CROSS JOIN flow AS f ON f.id = g.value ->> 0
WHERE true
ORDER BY f.tenant_id, f.lane, f.route, f.broadcast, g.value ->> 1
ON CONFLICT (tenant_id, lane, route, broadcast, account) DO NOTHING;

-- name: read_pinned_flows
-- In the order asked, after the insert above.
SELECT s.id
FROM json_each(:flows) AS g
CROSS JOIN flow AS f ON f.id = g.value ->> 0
CROSS JOIN flow AS s
  ON
    s.tenant_id = f.tenant_id AND s.lane = f.lane AND s.route = f.route AND s.broadcast = f.broadcast
    AND s.account = g.value ->> 1
ORDER BY g.key;

-- name: wake_in_line
-- Whoever closes rows makes as many of those that wait in line behind them due, the first ones first.
UPDATE outgoing_message
SET due_at = clarion_now(), in_line = 0
FROM (
  SELECT n.id, g.value ->> 1 AS closed, row_number() OVER (PARTITION BY g.key ORDER BY n.id) AS place
  FROM json_each(:keys) AS g
  CROSS JOIN outgoing_message AS n ON n.order_key = g.value ->> 0 AND n.due_at IS NOT NULL AND n.in_line = 1
  CROSS JOIN flow AS nf ON nf.id = n.flow_id
  WHERE
    NOT EXISTS (
      SELECT 1 FROM broadcast AS ns WHERE ns.tenant_id = nf.tenant_id AND ns.broadcast = nf.broadcast AND ns.gate <> 'Open'
    )
) AS line
WHERE outgoing_message.id = +line.id AND line.place <= line.closed;

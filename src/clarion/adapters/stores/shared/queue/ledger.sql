-- name: lock_rows
-- Each in its latest version. The caller gives them in the order of bucket and id, as everybody does, so that two who
-- want the same rows wait for each other and never deadlock.
SELECT
  o.bucket, o.id, o.tenant_id, o.pk, CAST(o.message_id AS text) AS message_id, o.correlation_id, o.flow_id,
  o.has_broadcast, o.order_key, o.status, o.reason_class, o.version, o.attempts, o.claim_token, o.account,
  o.first_unknown_at IS NOT NULL AS may_have_arrived, o.replay_authorised, o.settle_at IS NOT NULL AS waits_for_decision,
  o.cancel_at IS NOT NULL AS is_called_off, o.cancel_actor, coalesce(o.expires_at <= now(), false) AS is_out_of_time,
  o.in_line, o.channel, o.category
FROM {rows: bucket whole, id whole} AS g
JOIN outgoing_message AS o ON o.bucket = g.bucket AND o.id = g.id
FOR UPDATE;

-- name: read_attempts
-- A statement of its own after the lock. In the same statement PostgreSQL would read the attempts as they were before
-- it waited for the lock.
SELECT
  d.bucket, d.outgoing_id, d.attempt, d.claim_token, d.status, d.provider_message_id, d.reason, d.content_hash,
  d.latency_ms
FROM {rows: bucket whole, id whole} AS g
JOIN delivery_attempt AS d ON d.bucket = g.bucket AND d.outgoing_id = g.id
ORDER BY d.bucket, d.outgoing_id, d.attempt;

-- name: find_flows_of_account
-- The flow that is like another one and pinned to an account (to none, where that is empty).
SELECT g.flow_id, g.account, p.id AS found_id
FROM {flows: flow_id whole, account text} AS g
JOIN flow AS f ON f.id = g.flow_id
JOIN flow AS p
  ON
    p.tenant_id = f.tenant_id AND p.lane = f.lane AND p.route = f.route AND p.broadcast = f.broadcast
    AND p.account = g.account;

-- name: insert_flows_of_account
-- The first time that a row of a flow is uncertain after a call through this account.
INSERT INTO flow (tenant_id, lane, route, broadcast, account)
SELECT f.tenant_id, f.lane, f.route, f.broadcast, g.account
FROM {flows: flow_id whole, account text} AS g
JOIN flow AS f ON f.id = g.flow_id
WHERE true
ORDER BY f.tenant_id, f.lane, f.route, f.broadcast, g.account
ON CONFLICT DO NOTHING;

-- name: move_rows
-- Every change of state but the plain claim and, on PostgreSQL, the plain acceptance. A row is uncertain since it was
-- claimed, which is its last line so far; its call cannot have begun before. `+` has SQLite look up the row by its id
-- and not go through the table.
UPDATE outgoing_message AS o
SET
  status = g.status,
  version = o.version + g.steps,
  flow_id = g.flow_id,
  due_at = now() + g.delay,
  lease_until = NULL,
  in_line = false,
  settle_at = CASE WHEN g.settles THEN now() END,
  cancel_at = CASE WHEN g.called_off_by IS NULL THEN o.cancel_at ELSE now() END,
  cancel_actor = coalesce(g.called_off_by, o.cancel_actor),
  attempts = o.attempts - g.taken_back,
  not_called = CASE WHEN g.is_forgiven THEN 0 ELSE o.not_called + g.not_called END,
  replays = o.replays + g.duplicates,
  replay_authorised = g.is_authorised,
  first_unknown_at = CASE
    WHEN g.frees THEN NULL
    WHEN g.pins
      THEN coalesce(
        o.first_unknown_at,
        (SELECT t.at FROM transition AS t WHERE t.bucket = o.bucket AND t.outgoing_id = o.id AND t.version = o.version)
      )
    ELSE o.first_unknown_at
  END,
  provider_message_id = coalesce(o.provider_message_id, g.provider_message_id),
  content_hash = coalesce(o.content_hash, g.content_hash),
  reason = g.reason,
  reason_class = g.reason_class
FROM {rows:
  bucket whole, id whole, status text, steps whole, flow_id whole, delay duration, settles truth, called_off_by text,
  taken_back whole, not_called whole, is_forgiven truth, duplicates whole, is_authorised truth, frees truth, pins truth,
  provider_message_id text, content_hash text, reason text, reason_class text
} AS g
WHERE o.bucket = g.bucket AND o.id = +g.id;

-- name: take_rows
-- Into flight, each through an account. An authorised replay stays so for this call, and what comes of the call ends it.
UPDATE outgoing_message AS o
SET
  status = 'Sending', version = o.version + 1, due_at = NULL, in_line = false,
  lease_until = now() + CAST(:lease AS interval), claim_token = :token, account = g.account, attempts = o.attempts + 1,
  reason = NULL, reason_class = ''
FROM {rows: bucket whole, id whole, account text} AS g
WHERE o.bucket = g.bucket AND o.id = +g.id;

-- name: note_rows
-- What is written of rows that keep their state: proof that came late, a cancel of what is in flight or uncertain, and
-- a place in line behind another row of the order key. One that is in line already and stays there looks again soon.
UPDATE outgoing_message AS o
SET
  provider_message_id = coalesce(o.provider_message_id, g.provider_message_id),
  content_hash = coalesce(o.content_hash, g.content_hash),
  cancel_at = CASE WHEN g.called_off_by IS NULL THEN o.cancel_at ELSE now() END,
  cancel_actor = coalesce(g.called_off_by, o.cancel_actor),
  due_at = CASE
    WHEN g.in_line_for IS NOT NULL THEN now() + g.in_line_for
    WHEN o.in_line AND o.due_at > now() + CAST(:look_again AS interval) THEN now() + CAST(:look_again AS interval)
    ELSE o.due_at
  END,
  in_line = o.in_line OR g.in_line_for IS NOT NULL
FROM {rows:
  bucket whole, id whole, provider_message_id text, content_hash text, called_off_by text, in_line_for duration
} AS g
WHERE o.bucket = g.bucket AND o.id = +g.id;

-- name: write_lines
-- One line for every change of state (I-42). The key has the version, so a second line for one change is refused.
INSERT INTO transition (tenant_id, bucket, outgoing_id, version, from_status, to_status, actor, reason, at)
SELECT g.tenant_id, g.bucket, g.id, g.version, g.from_status, g.to_status, g.actor, g.reason, now()
FROM {lines:
  tenant_id text, bucket whole, id whole, version whole, from_status text, to_status text, actor text, reason text
} AS g;

-- name: write_attempts
-- New ones, and those of which more is known now. What is known of an outcome is never overwritten by another.
INSERT INTO delivery_attempt AS d (
  tenant_id, bucket, outgoing_id, attempt, claim_token, account, status, provider_message_id, reason, content_hash,
  latency_ms, at, correlation_id, traceparent
)
SELECT
  o.tenant_id, o.bucket, o.id, g.attempt, g.claim_token, coalesce(o.account, ''), g.status, g.provider_message_id,
  g.reason, g.content_hash, g.latency_ms, now(), o.correlation_id, o.traceparent
FROM {attempts:
  bucket whole, outgoing_id whole, attempt whole, claim_token guid, status text, provider_message_id text, reason text,
  content_hash text, latency_ms whole
} AS g
JOIN outgoing_message AS o ON o.bucket = g.bucket AND o.id = g.outgoing_id
WHERE true
ON CONFLICT (bucket, outgoing_id, attempt) DO UPDATE
SET
  status = excluded.status,
  provider_message_id = excluded.provider_message_id,
  reason = excluded.reason,
  content_hash = excluded.content_hash,
  latency_ms = excluded.latency_ms
WHERE d.status IN ('Unknown', excluded.status);

-- name: delete_attempts
-- Calls that were taken for unknown when their lease ended, and that a late reply shows were never made.
DELETE FROM delivery_attempt AS d
WHERE
  d.bucket IN {buckets: whole} AND d.outgoing_id IN {ids: whole}
  AND EXISTS (
    SELECT 1
    FROM {attempts: bucket whole, id whole, attempt whole} AS g
    WHERE g.bucket = d.bucket AND g.id = d.outgoing_id AND g.attempt = d.attempt
  );

-- name: lock_next_in_line
-- After rows were closed: of each of their order keys the first row in line that goes as soon as it may. One is enough,
-- because the others would have to wait for it again; not so for one that is pinned to an account, and for one of a
-- broadcast, which may be paused before it goes: these look again by themselves. One that somebody else holds is passed
-- over, and the one behind it is taken instead: the holder may be closing it, and may have looked who is next before
-- that one came. Each look-up names the whole condition of the order index: a part of it would do for the queue's index
-- too, which the planner likes better while it takes the queue for empty.
SELECT n.bucket, n.id
FROM {keys: order_key text} AS g
JOIN outgoing_message AS n
  ON
    n.order_key = g.order_key AND (n.due_at IS NOT NULL OR n.lease_until IS NOT NULL)
    AND n.id = (
      SELECT w.id
      FROM outgoing_message AS w
      WHERE
        w.order_key = g.order_key AND (w.due_at IS NOT NULL OR w.lease_until IS NOT NULL) AND w.in_line
        AND w.first_unknown_at IS NULL AND NOT w.has_broadcast
      ORDER BY w.id
      LIMIT 1
      FOR UPDATE SKIP LOCKED
    );

-- name: wake_rows
-- Those that were found in line are due now.
UPDATE outgoing_message AS o
SET due_at = now(), in_line = false
FROM {rows: bucket whole, id whole} AS g
WHERE o.bucket = g.bucket AND o.id = +g.id;

-- name: change_counts
-- The last locks of a transaction, sorted, because every batch of a campaign wants the same few rows.
INSERT INTO flow_count AS c (tenant_id, flow_id, status, reason_class, n)
SELECT g.tenant_id, g.flow_id, g.status, g.reason_class, g.n
FROM {counts: tenant_id text, flow_id whole, status text, reason_class text, n whole} AS g
WHERE true
ORDER BY g.tenant_id, g.flow_id, g.status, g.reason_class
ON CONFLICT (tenant_id, flow_id, status, reason_class) DO UPDATE SET n = c.n + excluded.n;

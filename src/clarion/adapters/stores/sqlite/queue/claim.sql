-- name: find_flows
-- The flows of these routes, but for those behind a gate that is not open. `unlikely` keeps the search by route: where
-- the statistics say that nearly all flows have one route, the planner would go through all flows once for each route.
SELECT f.id AS flow_id, f.tenant_id, f.lane, f.route, f.broadcast, f.account
FROM json_each(:routes) AS g
CROSS JOIN flow AS f ON unlikely(f.route = g.value)
WHERE
  NOT EXISTS (
    SELECT 1 FROM broadcast AS s WHERE s.tenant_id = f.tenant_id AND s.broadcast = f.broadcast AND s.gate <> 'Open'
  )
ORDER BY f.id;

-- name: find_heads
-- The first row of each flow behind its low mark: one look-up a flow, and flows are few.
SELECT
  g.key,
  (
    SELECT o.due_at
    FROM outgoing_message AS o
    WHERE
      o.flow_id = g.value ->> 0 AND o.due_at IS NOT NULL AND (o.due_at, o.id) > (g.value ->> 1, g.value ->> 2)
    ORDER BY o.due_at, o.id
    LIMIT 1
  ) AS due_at
FROM json_each(:flows) AS g;

-- name: pick_messages
-- All flows at once, so that the number of statements does not grow with theirs: of each flow the first rows that are
-- due behind its low mark, by the index of its queue. SQLite has no LATERAL, but a table-valued function takes an
-- argument from the tables before it; LIMIT cannot, so it is the largest quota and the rest is cut off. Everything that
-- a call needs comes with its row (I-14), and what the claim must know to rule: whether it is blocked by its order key.
-- Blocked means that another row of the key is in flight, or that an earlier one behind an open gate is due or at most
-- :soon from its retry; one that is pinned waits for its replay and blocks nobody. A campaign's parent is its messaging
-- job, though its anchor has the same key.
WITH quota AS MATERIALIZED (
  SELECT
    g.key AS place,
    g.value ->> 0 AS flow_id,
    g.value ->> 1 AS quota,
    g.value ->> 2 AS account,
    g.value ->> 3 AS low_due_at,
    g.value ->> 4 AS low_id
  FROM json_each(:quotas) AS g
)
SELECT
  o.id, o.bucket, o.tenant_id, o.flow_id, o.message_id, o.channel, o.attempt_no, o.attempts, o.not_called, q.account,
  o.due_at AS was_due_at, a.recipient_id_hash, a.key_hash, a.serial AS address_serial, a.ciphertext,
  coalesce(m.guid, j.guid) AS job_guid,
  CASE WHEN m.id IS NULL THEN j.event_type ELSE m.kind END AS event_type,
  CASE WHEN m.id IS NULL THEN j.template_key ELSE m.template_key END AS template_key,
  CASE WHEN m.id IS NULL THEN j.template_version ELSE m.template_version END AS template_version,
  CASE WHEN m.id IS NULL THEN j.payload END AS payload,
  o.content_hash, o.replay_authorised, :now - o.first_unknown_at AS unknown_for, o.correlation_id, o.traceparent,
  f.broadcast, o.version, o.status, o.reason_class, o.order_key, o.cancel_at, o.cancel_actor, o.expires_at,
  o.order_key IS NOT NULL
  AND (
    EXISTS (
      SELECT 1
      FROM outgoing_message AS e
      WHERE e.order_key = o.order_key AND e.lease_until IS NOT NULL AND e.id <> o.id
    )
    OR EXISTS (
      SELECT 1
      FROM outgoing_message AS e
      CROSS JOIN flow AS ef ON ef.id = e.flow_id AND ef.account = ''
      WHERE
        e.order_key = o.order_key AND e.id < o.id AND e.due_at IS NOT NULL
        AND e.due_at <= :now + CASE e.status WHEN 'RetryReady' THEN :soon ELSE 0 END
        AND NOT EXISTS (
          SELECT 1 FROM broadcast AS es WHERE es.tenant_id = ef.tenant_id AND es.broadcast = ef.broadcast AND es.gate <> 'Open'
        )
    )
  ) AS is_blocked
FROM quota AS q
CROSS JOIN flow AS f ON f.id = q.flow_id AND f.account IN ('', q.account)
CROSS JOIN json_each(
  (
    SELECT json_group_array(head.id)
    FROM (
      SELECT d.id
      FROM outgoing_message AS d
      WHERE
        d.flow_id = q.flow_id AND d.due_at IS NOT NULL AND d.due_at <= :now
        AND (d.due_at, d.id) > (q.low_due_at, q.low_id)
      ORDER BY d.due_at, d.id
      LIMIT :quota_max
    ) AS head
  )
) AS heads ON heads.key < q.quota
CROSS JOIN outgoing_message AS o ON o.id = heads.value
CROSS JOIN address_version AS a ON a.id = o.address_id
LEFT JOIN messaging_job AS m ON m.tenant_id = o.tenant_id AND m.guid = o.pk
LEFT JOIN notification_job AS j ON j.tenant_id = o.tenant_id AND j.row_key = o.pk
WHERE
  NOT EXISTS (
    SELECT 1 FROM broadcast AS s WHERE s.tenant_id = f.tenant_id AND s.broadcast = f.broadcast AND s.gate <> 'Open'
  )
ORDER BY q.place, heads.key;

-- name: take_messages
-- What nearly every claim is: all that was picked goes out, through one account. By id, of rows that were picked a
-- statement before; nobody else could write since. An authorised replay is so for this call: what comes of it ends it.
UPDATE outgoing_message
SET
  status = 'Sending',
  due_at = NULL,
  in_line = 0,
  lease_until = :lease_until,
  version = version + 1,
  claim_token = :token,
  account = :account,
  attempts = attempts + 1,
  reason = NULL,
  reason_class = ''
FROM json_each(:ids) AS g
WHERE outgoing_message.id = +g.value;

-- name: claim_messages
-- Where the rows have different ways to go. Without the + the planner would go through the table and look each row up in
-- the set. A row that stays where it is waits in line: due one lease later, unless the one before it is closed first.
UPDATE outgoing_message
SET
  status = p.status,
  due_at = CASE WHEN p.stays THEN :lease_until END,
  in_line = p.stays,
  lease_until = CASE p.status WHEN 'Sending' THEN :lease_until END,
  version = version + (NOT p.stays),
  claim_token = CASE p.status WHEN 'Sending' THEN :token ELSE claim_token END,
  account = CASE p.status WHEN 'Sending' THEN p.account ELSE outgoing_message.account END,
  attempts = attempts + (p.status = 'Sending'),
  replay_authorised = CASE WHEN p.stays OR p.status = 'Sending' THEN replay_authorised ELSE 0 END,
  reason = CASE WHEN p.stays THEN outgoing_message.reason ELSE p.reason END,
  reason_class = CASE WHEN p.stays THEN reason_class ELSE '' END
FROM (
  SELECT
    g.value ->> 0 AS id, g.value ->> 1 AS status, g.value ->> 2 AS account, g.value ->> 3 AS reason,
    g.value ->> 1 IN ('Created', 'RetryReady') AS stays
  FROM json_each(:ruled) AS g
) AS p
WHERE outgoing_message.id = +p.id;

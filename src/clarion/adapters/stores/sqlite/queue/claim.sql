-- name: find_flows
-- The flows of these routes, but for those behind a gate that is not open, and those of a lane that only a newer program
-- knows. `unlikely` keeps the search by route: where the statistics say that nearly all flows have one route, the planner
-- would go through all flows once for each route.
SELECT f.id AS flow_id, f.tenant_id, f.lane, f.route, f.broadcast, f.account
FROM json_each(:routes) AS g
CROSS JOIN flow AS f ON unlikely(f.route = g.value)
WHERE
  +f.lane IN (SELECT given.value FROM json_each(:lanes) AS given)
  AND NOT EXISTS (
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
-- a call needs comes with its row (I-14), and whether the row is plainly to be sent: it was not called off, is not out
-- of time, no other row of its order key is open, and neither its destination nor its recipient is suppressed under a
-- scope that may apply to it (one look for each, because SQLite would build a table for IN; the + has it look by the
-- index of subjects alone, which takes half as long as that of all three columns). A campaign's parent is its messaging
-- job, though its anchor has the same key.
WITH quota AS MATERIALIZED (
  SELECT
    g.key AS place, g.value ->> 0 AS flow_id, g.value ->> 1 AS quota, g.value ->> 2 AS account,
    g.value ->> 3 AS low_due_at, g.value ->> 4 AS low_id
  FROM json_each(:quotas) AS g
)
SELECT
  o.id, o.bucket, o.tenant_id, o.flow_id, o.message_id, o.channel, o.attempt_no, o.attempts + 1 AS attempts,
  o.not_called, q.account, o.due_at AS was_due_at, o.content_hash, o.replay_authorised,
  :now - o.first_unknown_at AS unknown_for, o.correlation_id, o.traceparent, a.recipient_id_hash, a.key_hash,
  a.serial AS address_serial, a.ciphertext, coalesce(m.guid, j.guid) AS job_guid,
  CASE WHEN m.id IS NULL THEN j.event_type ELSE m.kind END AS event_type,
  CASE WHEN m.id IS NULL THEN j.template_key ELSE m.template_key END AS template_key,
  CASE WHEN m.id IS NULL THEN j.template_version ELSE m.template_version END AS template_version,
  CASE WHEN m.id IS NULL THEN j.payload END AS payload, m.content_hash AS blob_hash, o.attempts_max, o.locale, o.tz_id,
  o.person_version_id, v.profile_hash, v.profile, o.created_at, :token AS claim_token,
  o.version, o.status, o.reason_class, o.has_broadcast,
  o.cancel_at IS NULL AND coalesce(o.expires_at > :now, true)
  AND (
    o.order_key IS NULL
    OR NOT EXISTS (
      SELECT 1
      FROM outgoing_message AS e
      WHERE
        e.order_key = o.order_key AND (e.due_at IS NOT NULL OR e.lease_until IS NOT NULL) AND e.id <> o.id
    )
  )
  AND NOT EXISTS (
    SELECT 1
    FROM suppression AS s
    WHERE
      s.subject = a.destination_index AND +s.tenant_id = o.tenant_id
      AND (s.scope = '*' OR s.scope = o.category OR s.scope = o.category || ':' || o.channel)
  )
  AND NOT EXISTS (
    SELECT 1
    FROM suppression AS s
    WHERE
      s.subject = a.recipient_id_hash AND +s.tenant_id = o.tenant_id
      AND (s.scope = '*' OR s.scope = o.category OR s.scope = o.category || ':' || o.channel)
  ) AS is_plain
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
LEFT JOIN person_version AS v ON v.id = o.person_version_id
LEFT JOIN messaging_job AS m ON m.tenant_id = o.tenant_id AND m.guid = o.pk
LEFT JOIN notification_job AS j ON j.tenant_id = o.tenant_id AND j.row_key = o.pk
WHERE
  NOT EXISTS (
    SELECT 1 FROM broadcast AS s WHERE s.tenant_id = f.tenant_id AND s.broadcast = f.broadcast AND s.gate <> 'Open'
  )
ORDER BY q.place, heads.key;

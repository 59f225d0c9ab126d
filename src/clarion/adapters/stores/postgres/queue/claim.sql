-- name: discover_flows
-- One look per flow, at its first row behind the low mark: what was claimed before that is skipped even while
-- somebody's old snapshot keeps it in the index. Flows are few, so looking at each is cheaper than finding out which
-- have rows. OFFSET 0, like LIMIT elsewhere, keeps a look-up a look-up.
WITH road AS MATERIALIZED (
  SELECT f.*, g.low_at, g.low_id
  FROM unnest($2::bigint[], $3::timestamptz[], $4::bigint[]) AS g (flow_id, low_at, low_id)
  CROSS JOIN LATERAL (
    SELECT found.id, found.tenant_id, found.lane, found.route, found.broadcast, found.account
    FROM flow AS found
    WHERE found.id = g.flow_id AND found.route = ANY ($1::text[])
    LIMIT 1
  ) AS f
  UNION ALL
  SELECT f.*, '-infinity'::timestamptz, 0
  FROM unnest($1::text[]) AS g (route)
  CROSS JOIN LATERAL (
    SELECT found.id, found.tenant_id, found.lane, found.route, found.broadcast, found.account
    FROM flow AS found
    WHERE found.route = g.route AND found.id <> ALL ($2::bigint[])
    OFFSET 0
  ) AS f
)
SELECT r.id AS flow_id, r.tenant_id, r.lane, r.route, r.broadcast, r.account, head.due_at - now() AS due_in
FROM road AS r
CROSS JOIN LATERAL (
  SELECT found.due_at
  FROM outgoing_message AS found
  WHERE found.flow_id = r.id AND found.due_at IS NOT NULL AND (found.due_at, found.id) > (r.low_at, r.low_id)
  ORDER BY found.due_at, found.id
  LIMIT 1
) AS head
WHERE
  r.broadcast = ''
  OR coalesce((SELECT s.gate FROM broadcast AS s WHERE s.tenant_id = r.tenant_id AND s.broadcast = r.broadcast), 'Open') = 'Open'
ORDER BY r.id;

-- name: claim_outgoing
-- Receiving a message and claiming its row are one statement. Step by step: `gate` locks the broadcasts' rows, so that a
-- pause or a cancel waits for running claims and none begins after it (a lock waits for the latest version of the row
-- and sees it). `pick` walks each flow's part of the queue from its low mark and passes over what others hold. `ruled`
-- says what becomes of each row; the order of a recipient's messages is asked for by a scalar subselect, which stops at
-- its first hit. A row that must wait for another of its order key stays and is due one lease later, in line. `moved`
-- writes all of it, the rest follows from `moved`: lines of the timeline, and counters, last and sorted. Whatever this
-- statement closes makes one row due that was in line behind it, be it since now. A row that may not go out any more is
-- closed as `domain.outgoing.called_off` and `out_of_time` say.
WITH asked AS MATERIALIZED (
  SELECT g.flow_id, g.quota, g.account, g.low_at, g.low_id, f.tenant_id, f.broadcast
  FROM unnest($1::bigint[], $2::integer[], $3::text[], $4::timestamptz[], $5::bigint[]) AS g (
    flow_id, quota, account, low_at, low_id
  )
  CROSS JOIN LATERAL (
    SELECT found.tenant_id, found.broadcast
    FROM flow AS found
    WHERE found.id = g.flow_id AND found.account IN ('', g.account)
    LIMIT 1
  ) AS f
), gate AS MATERIALIZED (
  SELECT a.tenant_id, a.broadcast, s.gate
  FROM (SELECT DISTINCT d.tenant_id, d.broadcast FROM asked AS d WHERE d.broadcast <> '' ORDER BY 1, 2) AS a
  CROSS JOIN LATERAL (
    SELECT found.gate
    FROM broadcast AS found
    WHERE found.tenant_id = a.tenant_id AND found.broadcast = a.broadcast
    LIMIT 1
    FOR SHARE
  ) AS s
), road AS MATERIALIZED (
  SELECT a.*
  FROM asked AS a
  WHERE
    a.broadcast = ''
    OR coalesce((SELECT g.gate FROM gate AS g WHERE g.tenant_id = a.tenant_id AND g.broadcast = a.broadcast), 'Open') = 'Open'
), pick AS MATERIALIZED (
  SELECT o.*, r.account
  FROM road AS r
  CROSS JOIN LATERAL (
    SELECT
      found.bucket, found.id, found.status, found.due_at, found.expires_at, found.cancel_at, found.order_key,
      found.reason_class, found.replay_authorised, found.cancel_actor, found.first_unknown_at
    FROM outgoing_message AS found
    WHERE
      found.flow_id = r.flow_id AND found.due_at <= now()
      AND (found.due_at, found.id) > (coalesce(r.low_at, '-infinity'), coalesce(r.low_id, 0))
    ORDER BY found.due_at, found.id
    LIMIT r.quota
    FOR UPDATE SKIP LOCKED
  ) AS o
), ruled AS MATERIALIZED (
  SELECT
    p.*,
    CASE
      WHEN p.cancel_at IS NOT NULL THEN CASE WHEN p.first_unknown_at IS NULL THEN 'Canceled' ELSE 'Uncertain' END
      WHEN p.expires_at <= now() THEN CASE WHEN p.first_unknown_at IS NULL THEN 'Expired' ELSE 'Uncertain' END
      WHEN p.order_key IS NOT NULL AND (
        SELECT true
        FROM outgoing_message AS e
        WHERE
          e.order_key = p.order_key AND (e.due_at IS NOT NULL OR e.lease_until IS NOT NULL) AND e.id <> p.id
          AND (
            e.lease_until IS NOT NULL
            OR e.id < p.id
            AND e.due_at <= now() + CASE WHEN e.status = 'RetryReady' THEN $9::interval ELSE interval '0' END
            AND (
              SELECT
                f.account = ''
                AND coalesce(
                  (SELECT s.gate FROM broadcast AS s WHERE s.tenant_id = f.tenant_id AND s.broadcast = f.broadcast), 'Open'
                ) = 'Open'
              FROM flow AS f
              WHERE f.id = e.flow_id
            )
          )
        LIMIT 1
      ) THEN 'in line'
      ELSE 'Sending'
    END AS next
  FROM pick AS p
), closed AS MATERIALIZED (
  SELECT r.order_key, count(*) AS n
  FROM ruled AS r
  WHERE r.order_key IS NOT NULL AND r.next IN ('Canceled', 'Expired', 'Uncertain')
  GROUP BY r.order_key
), woken AS MATERIALIZED (
  SELECT w.bucket, w.id, w.since_now
  FROM closed AS c
  CROSS JOIN LATERAL (
    SELECT line.bucket, line.id, line.since_now
    FROM (
      SELECT r.bucket, r.id, true AS since_now
      FROM ruled AS r
      WHERE r.order_key = c.order_key AND r.next = 'in line'
      UNION ALL
      SELECT waiting.bucket, waiting.id, false
      FROM (
        SELECT found.bucket, found.id
        FROM outgoing_message AS found
        WHERE
          found.order_key = c.order_key AND found.due_at > now() AND found.in_line AND (
            SELECT
              coalesce((SELECT s.gate FROM broadcast AS s WHERE s.tenant_id = f.tenant_id AND s.broadcast = f.broadcast), 'Open')
              = 'Open'
            FROM flow AS f
            WHERE f.id = found.flow_id
          )
        ORDER BY found.id
        LIMIT c.n
        FOR UPDATE SKIP LOCKED
      ) AS waiting
    ) AS line
    ORDER BY line.id
    LIMIT c.n
  ) AS w
), moved AS (
  UPDATE outgoing_message AS o
  SET
    status = CASE WHEN r.next = 'in line' THEN o.status ELSE r.next END,
    version = o.version + CASE WHEN r.next = 'in line' THEN 0 ELSE 1 END,
    due_at = CASE
      WHEN r.next = 'in line' AND (SELECT true FROM woken AS w WHERE w.bucket = r.bucket AND w.id = r.id) THEN now()
      WHEN r.next = 'in line' THEN now() + $7::interval
    END,
    in_line = r.next = 'in line' AND (SELECT true FROM woken AS w WHERE w.bucket = r.bucket AND w.id = r.id) IS NULL,
    lease_until = CASE WHEN r.next = 'Sending' THEN now() + $7::interval END,
    claim_token = CASE WHEN r.next = 'Sending' THEN $6::uuid ELSE o.claim_token END,
    account = CASE WHEN r.next = 'Sending' THEN r.account ELSE o.account END,
    attempts = o.attempts + CASE WHEN r.next = 'Sending' THEN 1 ELSE 0 END,
    replay_authorised = o.replay_authorised AND r.next IN ('Sending', 'in line'),
    reason = CASE
      WHEN r.next = 'in line' THEN o.reason
      WHEN r.next = 'Canceled' THEN 'canceled before it was sent'
      WHEN r.next = 'Expired' THEN 'its time ran out before it was sent'
      WHEN r.next = 'Uncertain' AND r.cancel_at IS NOT NULL THEN 'canceled, and an earlier call may have arrived'
      WHEN r.next = 'Uncertain' THEN 'its time ran out, and an earlier call may have arrived'
    END,
    reason_class = CASE WHEN r.next = 'in line' THEN o.reason_class ELSE '' END
  FROM ruled AS r
  WHERE o.bucket = r.bucket AND o.id = r.id
  RETURNING
    o.id, o.bucket, o.tenant_id, o.flow_id, o.pk, o.message_id, o.address_id, o.channel, o.attempt_no, o.attempts,
    o.not_called, o.version, o.account, o.content_hash, o.first_unknown_at, o.correlation_id, o.traceparent, o.reason,
    r.status AS was, r.reason_class AS was_class, r.due_at AS was_due_at, r.replay_authorised, r.next, o.has_broadcast,
    CASE WHEN r.next = 'Canceled' THEN r.cancel_actor END AS canceler
), waked AS (
  UPDATE outgoing_message AS o
  SET due_at = now(), in_line = false
  FROM woken AS w
  WHERE o.bucket = w.bucket AND o.id = w.id AND NOT w.since_now
), told AS (
  INSERT INTO transition (tenant_id, bucket, outgoing_id, version, from_status, to_status, actor, reason)
  SELECT m.tenant_id, m.bucket, m.id, m.version, m.was, m.next, coalesce(m.canceler, $8), m.reason
  FROM moved AS m
  WHERE m.next <> 'in line'
), counted AS (
  INSERT INTO flow_count AS c (tenant_id, flow_id, status, reason_class, n)
  SELECT d.tenant_id, d.flow_id, d.status, d.reason_class, sum(d.n)
  FROM (
    SELECT m.tenant_id, m.flow_id, m.next AS status, '' AS reason_class, 1 AS n
    FROM moved AS m
    WHERE m.has_broadcast AND m.next <> 'in line'
    UNION ALL
    SELECT m.tenant_id, m.flow_id, m.was, m.was_class, -1
    FROM moved AS m
    WHERE m.has_broadcast AND m.next <> 'in line'
  ) AS d
  GROUP BY d.tenant_id, d.flow_id, d.status, d.reason_class
  ORDER BY d.tenant_id, d.flow_id, d.status, d.reason_class
  ON CONFLICT (tenant_id, flow_id, status, reason_class) DO UPDATE SET n = c.n + excluded.n
)
SELECT
  m.id, m.bucket, m.tenant_id, m.flow_id, m.message_id, m.channel, m.attempt_no, m.attempts, m.not_called, m.account,
  m.was_due_at, m.content_hash, m.replay_authorised, now() - m.first_unknown_at AS unknown_for, m.correlation_id,
  m.traceparent,
  a.recipient_id_hash, a.key_hash, a.serial AS address_serial, a.ciphertext,
  j.guid AS job_guid, j.event_type, j.template_key, j.template_version, j.payload
FROM moved AS m
CROSS JOIN LATERAL (
  SELECT found.recipient_id_hash, found.key_hash, found.serial, found.ciphertext
  FROM address_version AS found
  WHERE found.id = m.address_id
  LIMIT 1
) AS a
CROSS JOIN LATERAL (
  SELECT found.guid, found.kind AS event_type, found.template_key, found.template_version, NULL::bytea AS payload
  FROM messaging_job AS found
  WHERE
    found.tenant_id = m.tenant_id
    AND found.guid = CASE
      WHEN length(m.pk) = 36 AND m.pk ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' THEN m.pk::uuid
    END
  UNION ALL
  SELECT found.guid, found.event_type, found.template_key, found.template_version, found.payload
  FROM notification_job AS found
  WHERE found.tenant_id = m.tenant_id AND found.row_key = m.pk
  LIMIT 1
) AS j
WHERE m.next = 'Sending';

-- name: find_claimed
-- For whoever lost the connection while it claimed (F-24): what the claim of this token has taken, if it was committed.
-- Few rows are in flight, so their index is walked. Only while half of the lease ($2) is left, for the call must end
-- before it. When a row was due is not known any more; it was not due before it was made, and a low mark may be too
-- low.
SELECT
  o.id, o.bucket, o.tenant_id, o.flow_id, o.message_id, o.channel, o.attempt_no, o.attempts, o.not_called, o.account,
  o.created_at AS was_due_at, o.content_hash, o.replay_authorised, now() - o.first_unknown_at AS unknown_for,
  o.correlation_id, o.traceparent,
  a.recipient_id_hash, a.key_hash, a.serial AS address_serial, a.ciphertext,
  j.guid AS job_guid, j.event_type, j.template_key, j.template_version, j.payload
FROM (
  SELECT found.*
  FROM outgoing_message AS found
  WHERE found.lease_until > now() + $2::interval / 2 AND found.claim_token = $1
  OFFSET 0
) AS o
CROSS JOIN LATERAL (
  SELECT found.recipient_id_hash, found.key_hash, found.serial, found.ciphertext
  FROM address_version AS found
  WHERE found.id = o.address_id
  LIMIT 1
) AS a
CROSS JOIN LATERAL (
  SELECT found.guid, found.kind AS event_type, found.template_key, found.template_version, NULL::bytea AS payload
  FROM messaging_job AS found
  WHERE
    found.tenant_id = o.tenant_id
    AND found.guid = CASE
      WHEN length(o.pk) = 36 AND o.pk ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' THEN o.pk::uuid
    END
  UNION ALL
  SELECT found.guid, found.event_type, found.template_key, found.template_version, found.payload
  FROM notification_job AS found
  WHERE found.tenant_id = o.tenant_id AND found.row_key = o.pk
  LIMIT 1
) AS j;

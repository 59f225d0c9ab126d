-- name: discover_flows
-- One look per flow, at its first row behind the low mark: what was claimed before that is skipped even while
-- somebody's old snapshot keeps it in the index. Flows are few, so looking at each is cheaper than finding out which
-- have rows. Those of a lane that only a newer program knows are left to it.
WITH wanted_flows AS MATERIALIZED (
  SELECT f.id, f.tenant_id, f.lane, f.route, f.broadcast, f.account, g.low_at, g.low_id
  FROM {lows: flow_id whole, low_at instant, low_id whole} AS g
  JOIN flow AS f ON f.id = g.flow_id AND f.route IN {routes: text}
  UNION ALL
  SELECT f.id, f.tenant_id, f.lane, f.route, f.broadcast, f.account, '-infinity'::timestamptz, 0
  FROM {wanted: route text} AS g
  JOIN flow AS f ON f.route = g.route AND f.id NOT IN {marked: whole}
)
SELECT r.id AS flow_id, r.tenant_id, r.lane, r.route, r.broadcast, r.account, head.due_at - now() AS due_in
FROM wanted_flows AS r
CROSS JOIN LATERAL (
  SELECT found.due_at
  FROM outgoing_message AS found
  WHERE found.flow_id = r.id AND found.due_at IS NOT NULL AND (found.due_at, found.id) > (r.low_at, r.low_id)
  ORDER BY found.due_at, found.id
  LIMIT 1
) AS head
WHERE
  r.lane IN {lanes: text}
  AND (
    r.broadcast = ''
    OR coalesce(
      (SELECT b.gate FROM broadcast AS b WHERE b.tenant_id = r.tenant_id AND b.broadcast = r.broadcast), 'Open'
    ) = 'Open'
  )
ORDER BY r.id;

-- name: claim_plain
-- The claim as it nearly always is: every row that it picks is plainly to be sent, and is sent. A row is so if it was
-- not called off, is not out of time, no other row of its order key is open (LIMIT 1 ends that look at the first), and
-- neither its destination nor its recipient is suppressed under a scope that may apply to it: one look for each, by the
-- hash index of the subjects. The length of a key tells most jobs apart sooner than its form.
-- If any is not, nothing is written, and `shared.queue.claim` rules what was picked. Gates are locked first: a pause or
-- a cancel waits for running claims, and none begins after it. The walk along a flow's queue passes over what others
-- hold. Counters come last and sorted.
WITH wanted_flows AS MATERIALIZED (
  SELECT g.flow_id, g.quota, g.account, coalesce(g.low_at, '-infinity') AS low_at, coalesce(g.low_id, 0) AS low_id
  FROM {quotas: flow_id whole, quota whole, account text, low_at instant, low_id whole} AS g
  JOIN flow AS f ON f.id = g.flow_id AND f.account IN ('', g.account)
  WHERE
    f.broadcast = ''
    OR coalesce(
      (SELECT b.gate FROM broadcast AS b WHERE b.tenant_id = f.tenant_id AND b.broadcast = f.broadcast FOR SHARE), 'Open'
    ) = 'Open'
), pick AS MATERIALIZED (
  SELECT
    o.*, r.account, a.recipient_id_hash, a.key_hash, a.serial AS address_serial, a.ciphertext,
    o.cancel_at IS NULL AND coalesce(o.expires_at > now(), true) AND (
      o.order_key IS NULL OR (
        SELECT true
        FROM outgoing_message AS e
        WHERE e.order_key = o.order_key AND (e.due_at IS NOT NULL OR e.lease_until IS NOT NULL) AND e.id <> o.id
        LIMIT 1
      ) IS NULL
    ) AND (
      SELECT true
      FROM suppression AS s
      WHERE
        s.subject = a.destination_index AND s.tenant_id = o.tenant_id
        AND (s.scope = '*' OR s.scope = o.category OR s.scope = o.category || ':' || o.channel)
      LIMIT 1
    ) IS NULL AND (
      SELECT true
      FROM suppression AS s
      WHERE
        s.subject = a.recipient_id_hash AND s.tenant_id = o.tenant_id
        AND (s.scope = '*' OR s.scope = o.category OR s.scope = o.category || ':' || o.channel)
      LIMIT 1
    ) IS NULL AS is_plain
  FROM wanted_flows AS r
  CROSS JOIN LATERAL (
    SELECT
      found.id, found.bucket, found.tenant_id, found.flow_id, found.message_id, found.channel, found.attempt_no,
      found.attempts, found.not_called, found.due_at, found.content_hash, found.replay_authorised,
      found.first_unknown_at, found.correlation_id, found.traceparent, found.address_id, found.pk, found.cancel_at,
      found.expires_at, found.order_key, found.version, found.status, found.reason_class, found.attempts_max,
      found.locale, found.tz_id, found.person_version_id, found.category, found.created_at
    FROM outgoing_message AS found
    WHERE found.flow_id = r.flow_id AND found.due_at <= now() AND (found.due_at, found.id) > (r.low_at, r.low_id)
    ORDER BY found.due_at, found.id
    LIMIT r.quota
    FOR UPDATE SKIP LOCKED
  ) AS o
  JOIN address_version AS a ON a.id = o.address_id
), moved AS (
  UPDATE outgoing_message AS o
  SET
    status = 'Sending', version = o.version + 1, due_at = NULL, in_line = false, lease_until = now() + :lease::interval,
    claim_token = :token, account = p.account, attempts = o.attempts + 1, reason = NULL, reason_class = ''
  FROM pick AS p
  WHERE o.bucket = p.bucket AND o.id = p.id AND (SELECT bool_and(q.is_plain) FROM pick AS q)
  RETURNING o.tenant_id, o.bucket, o.id, o.version, o.flow_id, o.has_broadcast, p.status, p.reason_class
), transitions AS (
  INSERT INTO transition (tenant_id, bucket, outgoing_id, version, from_status, to_status, actor)
  SELECT m.tenant_id, m.bucket, m.id, m.version, m.status, 'Sending', :actor FROM moved AS m
), counted AS (
  INSERT INTO flow_count AS c (tenant_id, flow_id, status, reason_class, n)
  SELECT m.tenant_id, m.flow_id, d.status, d.reason_class, sum(d.n)
  FROM moved AS m
  CROSS JOIN LATERAL (VALUES ('Sending', '', 1), (m.status, m.reason_class, -1)) AS d (status, reason_class, n)
  WHERE m.has_broadcast
  GROUP BY 1, 2, 3, 4
  ORDER BY 1, 2, 3, 4
  ON CONFLICT (tenant_id, flow_id, status, reason_class) DO UPDATE SET n = c.n + excluded.n
)
SELECT
  p.id, p.bucket, p.tenant_id, p.flow_id, p.message_id, p.channel, p.attempt_no, p.attempts + 1 AS attempts,
  p.not_called, p.account, p.due_at AS was_due_at, p.content_hash, p.replay_authorised,
  now() - p.first_unknown_at AS unknown_for, p.correlation_id, p.traceparent,
  p.recipient_id_hash, p.key_hash, p.address_serial, p.ciphertext,
  j.guid AS job_guid, j.event_type, j.template_key, j.template_version, j.payload, j.blob_hash, p.attempts_max, p.locale,
  p.tz_id, p.person_version_id, v.profile_hash, v.profile, p.created_at, p.version, p.is_plain
FROM pick AS p
LEFT JOIN person_version AS v ON v.id = p.person_version_id
CROSS JOIN LATERAL (
  SELECT
    found.guid, found.kind AS event_type, found.template_key, found.template_version, NULL::bytea AS payload,
    found.content_hash AS blob_hash
  FROM messaging_job AS found
  WHERE found.tenant_id = p.tenant_id AND found.guid = CASE WHEN length(p.pk) = 36 THEN CASE WHEN p.pk ~ :guid_form THEN p.pk::uuid END END
  UNION ALL
  SELECT found.guid, found.event_type, found.template_key, found.template_version, found.payload, NULL::text
  FROM notification_job AS found
  WHERE found.tenant_id = p.tenant_id AND found.row_key = p.pk
  LIMIT 1
) AS j;

-- name: find_claimed
-- For whoever lost the connection while it claimed (F-24): what the claim of this token has taken, if it was committed.
-- Few rows are in flight, so their index is walked. Only while half of the lease is left, for the call must end before
-- it. When a row was due is not known any more; it was not due before it was made, and a low mark may be too low.
SELECT
  o.id, o.bucket, o.tenant_id, o.flow_id, o.message_id, o.channel, o.attempt_no, o.attempts, o.not_called, o.account,
  o.created_at AS was_due_at, o.content_hash, o.replay_authorised, now() - o.first_unknown_at AS unknown_for,
  o.correlation_id, o.traceparent,
  a.recipient_id_hash, a.key_hash, a.serial AS address_serial, a.ciphertext,
  j.guid AS job_guid, j.event_type, j.template_key, j.template_version, j.payload, j.blob_hash, o.attempts_max, o.locale,
  o.tz_id, o.person_version_id, v.profile_hash, v.profile, o.created_at, o.version, true AS is_plain
FROM (
  SELECT found.*
  FROM outgoing_message AS found
  WHERE found.lease_until > now() + :lease::interval / 2 AND found.claim_token = :token
  OFFSET 0
) AS o
JOIN address_version AS a ON a.id = o.address_id
LEFT JOIN person_version AS v ON v.id = o.person_version_id
CROSS JOIN LATERAL (
  SELECT
    found.guid, found.kind AS event_type, found.template_key, found.template_version, NULL::bytea AS payload,
    found.content_hash AS blob_hash
  FROM messaging_job AS found
  WHERE found.tenant_id = o.tenant_id AND found.guid = CASE WHEN o.pk ~ :guid_form THEN o.pk::uuid END
  UNION ALL
  SELECT found.guid, found.event_type, found.template_key, found.template_version, found.payload, NULL::text
  FROM notification_job AS found
  WHERE found.tenant_id = o.tenant_id AND found.row_key = o.pk
  LIMIT 1
) AS j;

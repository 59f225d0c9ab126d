-- name: read_flows
-- A handful for each set.
SELECT f.lane, f.route, f.broadcast, f.id
FROM {keys: lane text, route text, broadcast text} AS g
JOIN flow AS f
  ON
    f.tenant_id = :tenant_id AND f.lane = g.lane AND f.route = g.route AND f.broadcast = g.broadcast
    AND f.account = '';

-- name: insert_broadcasts
-- A broadcast has its row before it has messages, so that a pause always has something to lock. Sorted, as every insert.
INSERT INTO broadcast (tenant_id, broadcast)
SELECT :tenant_id, g.broadcast
FROM {broadcasts: broadcast text} AS g
WHERE true
ORDER BY g.broadcast
ON CONFLICT DO NOTHING;

-- name: insert_flows
-- Those that were missing when we looked. Sorted, as every insert.
INSERT INTO flow (tenant_id, lane, route, broadcast)
SELECT :tenant_id, g.lane, g.route, g.broadcast
FROM {keys: lane text, route text, broadcast text} AS g
WHERE true
ORDER BY g.lane, g.route, g.broadcast
ON CONFLICT DO NOTHING
RETURNING lane, route, broadcast, id;

-- name: read_parents
-- A campaign's history anchor has the campaign's guid as its row key, so an item says which kind of parent it means.
SELECT j.row_key AS pk, NULL AS guid, j.bucket, j.correlation_id, j.traceparent
FROM {notification_jobs: row_key text} AS g
JOIN notification_job AS j ON j.tenant_id = :tenant_id AND j.row_key = g.row_key
UNION ALL
SELECT CAST(m.guid AS text), m.guid, m.bucket, m.correlation_id, m.traceparent
FROM {messaging_jobs: guid guid} AS g
JOIN messaging_job AS m ON m.tenant_id = :tenant_id AND m.guid = g.guid;

-- name: read_outgoing_messages
-- Only for rows that the insert did not make; a statement of its own, for the loser of a race. By the row key, as the
-- row was made (domain.key.outgoing_rk), so that an item finds the row of its key even where that is another address
-- version's. One row for each item, in the order of the set, also where there is nothing to find.
SELECT
  CASE WHEN a.id IS NOT NULL THEN a.key_hash || '_' || a.channel || coalesce('_' || CAST(g.attempt_no AS text), '') END
    AS rk,
  o.id, o.message_id, o.address_id, o.channel, o.attempt_no, o.status, o.version, o.correlation_id
FROM {
  items: bucket whole, pk text, address_id whole, recipient_id_hash text, channel text, attempt_no whole, place place
} AS g
LEFT JOIN address_version AS a
  ON
    a.id = g.address_id AND a.tenant_id = :tenant_id AND a.recipient_id_hash = g.recipient_id_hash
    AND a.channel = g.channel
LEFT JOIN outgoing_key AS k
  ON
    k.tenant_id = :tenant_id AND k.bucket = g.bucket AND k.pk = g.pk
    AND k.rk = a.key_hash || '_' || a.channel || coalesce('_' || CAST(g.attempt_no AS text), '')
LEFT JOIN outgoing_message AS o ON o.bucket = k.bucket AND o.id = k.outgoing_id
ORDER BY g.place;

-- name: count_deliveries
-- The jobs of the time by its index, and the rows of each by the first parts of their key: it costs what there is to
-- count, and no more. A line in an inbox has arrived. Behind a place, in the order of what is counted together.
SELECT m.event_type, m.channel, m.status, CAST(sum(m.messages) AS bigint) AS messages
FROM (
  SELECT j.event_type, o.channel, o.status, count(*) AS messages
  FROM notification_job AS j
  JOIN outgoing_key AS k
    ON k.tenant_id = j.tenant_id AND k.bucket = j.bucket AND k.pk = coalesce(j.messaging_job, j.row_key)
  JOIN outgoing_message AS o ON o.bucket = k.bucket AND o.id = k.outgoing_id
  WHERE j.tenant_id = :tenant_id AND j.source_at >= :start_at AND j.source_at < :end_at
  GROUP BY j.event_type, o.channel, o.status
  UNION ALL
  SELECT j.event_type, 'inbox', 'Delivered', count(*)
  FROM notification_job AS j
  JOIN user_message AS u ON u.tenant_id = j.tenant_id AND u.job_row_key = j.row_key
  WHERE j.tenant_id = :tenant_id AND j.source_at >= :start_at AND j.source_at < :end_at
  GROUP BY j.event_type
) AS m
WHERE
  m.event_type COLLATE "C" > :after_type
  OR (m.event_type COLLATE "C" = :after_type AND m.channel COLLATE "C" > :after_channel)
GROUP BY m.event_type, m.channel, m.status
ORDER BY m.event_type COLLATE "C", m.channel COLLATE "C", m.status COLLATE "C"
LIMIT :most;

-- name: count_broadcast
-- A few flows, each with a count for every state: these change in the transactions that move the rows (I-41).
SELECT c.status, c.reason_class, CAST(sum(c.n) AS bigint) AS messages
FROM flow AS f
JOIN flow_count AS c ON c.tenant_id = f.tenant_id AND c.flow_id = f.id
WHERE f.tenant_id = :tenant_id AND f.broadcast = :broadcast AND f.broadcast <> ''
GROUP BY c.status, c.reason_class
HAVING sum(c.n) <> 0
ORDER BY c.status, c.reason_class;

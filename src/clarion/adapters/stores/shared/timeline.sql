-- name: read_job
-- The job by its guid, or by that of the messaging job whose content it tells of, and when it was stored. Two look-ups,
-- each by its own index.
SELECT j.*
FROM (
  SELECT a.id FROM notification_job AS a WHERE a.tenant_id = :tenant_id AND a.guid = :guid
  UNION
  SELECT b.id FROM notification_job AS b WHERE b.tenant_id = :tenant_id AND b.messaging_job = :messaging_job
) AS found
JOIN notification_job AS j ON j.id = found.id;

-- name: read_scheduler_of_job
-- The pending row of a job, by the first parts of its unique key.
SELECT *
FROM notification_scheduler
WHERE
  tenant_id = :tenant_id AND artifact_type = :artifact_type AND artifact_pk = :artifact_pk AND artifact_rk = :artifact_rk
ORDER BY id
LIMIT 1;

-- name: read_inbox_of_job
-- The inbox rows of all recipients.
SELECT *
FROM user_message
WHERE tenant_id = :tenant_id AND job_row_key = :row_key
ORDER BY id;

-- name: read_messages_of_job
-- All outgoing rows of a job, by the first parts of their key.
SELECT o.*
FROM outgoing_key AS k
JOIN outgoing_message AS o ON o.bucket = k.bucket AND o.id = k.outgoing_id
WHERE k.tenant_id = :tenant_id AND k.bucket = :bucket AND k.pk = :outgoing_pk
ORDER BY o.id;

-- name: read_inbox_of_messages
-- The inbox rows of some recipients, by the index of their messages.
SELECT u.*
FROM {messages: message_id guid} AS g
JOIN user_message AS u ON u.tenant_id = :tenant_id AND u.message_id = g.message_id
WHERE u.job_row_key = :row_key
ORDER BY u.id;

-- name: read_messages
-- The outgoing rows of some recipients, by the index of their messages.
SELECT o.*
FROM {messages: message_id guid} AS g
JOIN outgoing_key AS k ON k.tenant_id = :tenant_id AND k.message_id = g.message_id
JOIN outgoing_message AS o ON o.bucket = k.bucket AND o.id = k.outgoing_id
WHERE k.bucket = :bucket AND k.pk = :outgoing_pk
ORDER BY o.id;

-- name: read_transitions_of_messages
-- Of all rows at once, each in the order of its versions.
SELECT t.outgoing_id, t.version, t.from_status, t.to_status, t.at, t.actor, t.reason
FROM {rows: bucket whole, id whole} AS g
JOIN transition AS t ON t.bucket = g.bucket AND t.outgoing_id = g.id
ORDER BY t.outgoing_id, t.version;

-- name: read_attempts_of_messages
-- Of all rows at once, each in its order.
SELECT d.outgoing_id, d.attempt, d.account, d.status, d.provider_message_id, d.reason, d.latency_ms, d.at
FROM {rows: bucket whole, id whole} AS g
JOIN delivery_attempt AS d ON d.bucket = g.bucket AND d.outgoing_id = g.id
ORDER BY d.outgoing_id, d.attempt;

-- name: read_events_of_messages
-- What providers reported about these rows, by our key or by the id that a provider gave to one of the calls; applied
-- or not, and each event once. Two look-ups, each by its own index: one condition with OR would have none.
SELECT e.outgoing_id, e.account, e.event_id, e.status, e.happened_at, e.received_at, e.applied_at
FROM (
  SELECT g.id AS outgoing_id, w.account, w.event_id, w.status, w.happened_at, w.received_at, w.applied_at
  FROM {messages: id whole, message_id guid, key_hash text} AS g
  JOIN webhook_event AS w
    ON w.tenant_id = :tenant_id AND w.message_id = g.message_id AND w.recipient_key_hash = g.key_hash
  UNION
  SELECT g.id, w.account, w.event_id, w.status, w.happened_at, w.received_at, w.applied_at
  FROM {calls: id whole, account text, provider_message_id text} AS g
  JOIN webhook_event AS w
    ON w.tenant_id = :tenant_id AND w.account = g.account AND w.provider_message_id = g.provider_message_id
) AS e
ORDER BY e.received_at, e.account COLLATE "C", e.event_id COLLATE "C", e.outgoing_id;

-- name: read_job
-- By guid; the row as it is, and when it was made.
SELECT
  j.id, j.partition_key, j.row_key, j.guid, j.message_id, j.event_type, j.operation, j.source_type, j.source,
  j.automation_key, j.run_key, j.template_key, j.asked_template_version, j.template_version, j.payload_hash, j.payload, j.recipients,
  j.source_at, j.bucket, j.key_version, j.actor, j.correlation_id, j.traceparent, j.created_at AS made_at
FROM notification_job AS j
WHERE j.tenant_id = :tenant_id AND j.guid = :guid;

-- name: read_scheduler
-- By the dispatch guard without its last part: a job has one row.
SELECT
  s.id, s.artifact_type, s.artifact_pk, s.artifact_rk, s.event_type, s.lane, s.stage, s.status, s.version, s.due_at,
  s.lease_until, s.retry_count, s.rescue_count, s.reason, s.diagnostics, s.correlation_id, s.traceparent,
  s.created_at, s.scheduled_at, s.moved_at
FROM notification_scheduler AS s
WHERE
  s.tenant_id = :tenant_id AND s.artifact_type = 'NotificationJob' AND s.artifact_pk = :partition_key
  AND s.artifact_rk = :row_key;

-- name: read_inbox
-- The lines of all its recipients.
SELECT
  u.id, u.bucket, u.partition_key, u.row_key, u.message_id, u.recipient_id_hash, u.job_row_key, u.event_type,
  u.content, u.correlation_id, u.traceparent, u.created_at AS made_at
FROM user_message AS u
WHERE u.tenant_id = :tenant_id AND u.job_row_key = :row_key
ORDER BY u.id;

-- name: read_outgoing
-- By the first parts of the unique key.
SELECT
  o.id, o.bucket, o.pk, o.rk, o.message_id, o.channel, o.status, o.version, o.attempts, o.reason, o.account,
  o.provider_message_id, o.due_at, o.cancel_at, o.cancel_actor, o.created_at
FROM outgoing_message AS o
WHERE o.tenant_id = :tenant_id AND o.bucket = :bucket AND o.pk = :row_key
ORDER BY o.id;

-- name: read_transitions
-- Of all rows at once, each in the order of its versions.
SELECT t.outgoing_id, t.version, t.from_status, t.to_status, t.at, t.actor, t.reason
FROM json_each(:rows) AS g
CROSS JOIN transition AS t ON t.bucket = :bucket AND t.outgoing_id = g.value
ORDER BY t.outgoing_id, t.version;

-- name: read_attempts
-- Of all rows at once, each in its order.
SELECT
  d.outgoing_id, d.attempt, d.account, d.status, d.provider_message_id, d.reason, d.latency_ms, d.at
FROM json_each(:rows) AS g
CROSS JOIN delivery_attempt AS d ON d.bucket = :bucket AND d.outgoing_id = g.value
ORDER BY d.outgoing_id, d.attempt;

-- name: read_events
-- An event is about a row by our key or by the provider's id of one of its attempts; each once. Two look-ups by their
-- own indexes, because one condition with OR has none.
SELECT o.id AS outgoing_id, e.account, e.event_id, e.status, e.happened_at, e.received_at, e.applied_at
FROM json_each(:rows) AS g
CROSS JOIN outgoing_message AS o ON o.id = g.value
CROSS JOIN address_version AS a ON a.id = o.address_id
CROSS JOIN webhook_event AS e
  ON e.tenant_id = o.tenant_id AND e.message_id = o.message_id AND e.recipient_key_hash = a.key_hash
UNION
SELECT d.outgoing_id, e.account, e.event_id, e.status, e.happened_at, e.received_at, e.applied_at
FROM json_each(:rows) AS g
CROSS JOIN delivery_attempt AS d ON d.bucket = :bucket AND d.outgoing_id = g.value
CROSS JOIN webhook_event AS e
  ON e.tenant_id = d.tenant_id AND e.account = d.account AND e.provider_message_id = d.provider_message_id
ORDER BY outgoing_id, received_at, event_id;

-- name: insert_messaging_jobs
-- The look-up, the order and ON CONFLICT as in every insert of an ensure: a repeat writes nothing, a race has one
-- winner, two callers cannot deadlock.
INSERT INTO messaging_job (
  tenant_id, guid, kind, source, run_key, template_key, asked_template_version, template_version, content_hash,
  source_at, bucket, key_version, correlation_id, traceparent
)
SELECT $1, g.*
FROM json_to_recordset($2::json) AS g (
  guid uuid, kind text, source text, run_key text, template_key text, asked_template_version integer,
  template_version integer, content_hash text, source_at timestamptz, bucket integer, key_version integer,
  correlation_id text, traceparent text
)
WHERE (SELECT j.id FROM messaging_job AS j WHERE j.tenant_id = $1 AND j.guid = g.guid) IS NULL
ORDER BY g.guid
ON CONFLICT DO NOTHING
RETURNING guid;

-- name: read_messaging_jobs
-- A statement of its own, for the loser of a race; LIMIT keeps the look-ups look-ups.
SELECT j.*
FROM json_to_recordset($2::json) AS g (guid uuid)
CROSS JOIN LATERAL (
  SELECT
    id, guid, kind, source, run_key, template_key, asked_template_version, template_version, content_hash, source_at,
    bucket, key_version, correlation_id, traceparent
  FROM messaging_job AS found
  WHERE found.tenant_id = $1 AND found.guid = g.guid
  LIMIT 1
) AS j;

-- name: insert_address_versions
-- As every insert of an ensure. The ciphertext of a serial that is taken is not even looked at: its nonce makes it
-- differ each time, so it is the key hash and the index that are compared.
INSERT INTO address_version (
  tenant_id, recipient_id_hash, channel, serial, key_hash, destination_index, ciphertext, correlation_id
)
SELECT
  $1, g.recipient_id_hash, g.channel, g.serial, g.key_hash, g.destination_index, decode(g.ciphertext, 'base64'),
  g.correlation_id
FROM json_to_recordset($2::json) AS g (
  recipient_id_hash text, channel text, serial integer, key_hash text, destination_index text, ciphertext text,
  correlation_id text
)
WHERE (
  SELECT a.id
  FROM address_version AS a
  WHERE
    a.tenant_id = $1 AND a.recipient_id_hash = g.recipient_id_hash AND a.channel = g.channel AND a.serial = g.serial
) IS NULL
ORDER BY g.recipient_id_hash, g.channel, g.serial
ON CONFLICT DO NOTHING
RETURNING recipient_id_hash, channel, serial;

-- name: read_address_versions
-- A statement of its own, for the loser of a race; LIMIT keeps the look-ups look-ups.
SELECT a.*
FROM json_to_recordset($2::json) AS g (recipient_id_hash text, channel text, serial integer)
CROSS JOIN LATERAL (
  SELECT id, recipient_id_hash, channel, serial, key_hash, destination_index, ciphertext, correlation_id
  FROM address_version AS found
  WHERE
    found.tenant_id = $1 AND found.recipient_id_hash = g.recipient_id_hash AND found.channel = g.channel
    AND found.serial = g.serial
  LIMIT 1
) AS a;

-- name: insert_user_messages
-- As every insert of an ensure; the bucket is part of the key, so that retention can drop a month. A scheduler row is
-- locked FOR SHARE as for outgoing messages: only if a row of its is missing, so that a cancel waits for those who
-- insert and is seen by those who come after it.
WITH missing AS MATERIALIZED (
  SELECT g.*
  FROM json_to_recordset($2::json) AS g (
    bucket integer, partition_key text, row_key text, message_id uuid, recipient_id_hash text, job_row_key text,
    event_type text, content text, correlation_id text, traceparent text, hold_id bigint, hold_version integer
  )
  WHERE (
    SELECT u.id
    FROM user_message AS u
    WHERE
      u.tenant_id = $1 AND u.bucket = g.bucket AND u.partition_key = g.partition_key AND u.row_key = g.row_key
  ) IS NULL
), held AS MATERIALIZED (
  SELECT s.id, s.version
  FROM (
    SELECT DISTINCT m.hold_id, m.hold_version FROM missing AS m WHERE m.hold_id IS NOT NULL ORDER BY m.hold_id
  ) AS h
  CROSS JOIN LATERAL (
    SELECT found.id, found.version
    FROM notification_scheduler AS found
    WHERE
      found.id = h.hold_id AND found.version = h.hold_version AND found.tenant_id = $1 AND found.status = 'Processing'
    LIMIT 1
    FOR SHARE
  ) AS s
)
INSERT INTO user_message (
  tenant_id, bucket, partition_key, row_key, message_id, recipient_id_hash, job_row_key, event_type, content,
  correlation_id, traceparent
)
SELECT
  $1, g.bucket, g.partition_key, g.row_key, g.message_id, g.recipient_id_hash, g.job_row_key, g.event_type,
  decode(g.content, 'base64'), g.correlation_id, g.traceparent
FROM missing AS g
WHERE g.hold_id IS NULL OR (g.hold_id, g.hold_version) IN (SELECT h.id, h.version FROM held AS h)
ORDER BY g.bucket, g.partition_key, g.row_key
ON CONFLICT DO NOTHING
RETURNING bucket, partition_key, row_key;

-- name: read_user_messages
-- A statement of its own, for the loser of a race; LIMIT keeps the look-ups look-ups.
SELECT u.*
FROM json_to_recordset($2::json) AS g (bucket integer, partition_key text, row_key text)
CROSS JOIN LATERAL (
  SELECT
    id, bucket, partition_key, row_key, message_id, recipient_id_hash, job_row_key, event_type, content,
    correlation_id, traceparent
  FROM user_message AS found
  WHERE
    found.tenant_id = $1 AND found.bucket = g.bucket AND found.partition_key = g.partition_key
    AND found.row_key = g.row_key
  LIMIT 1
) AS u;

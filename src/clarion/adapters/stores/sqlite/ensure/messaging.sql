-- name: insert_messaging_jobs
-- The look-up, the order and ON CONFLICT as in every insert of an ensure: a repeat writes nothing, and of two items
-- with one key the first makes the row.
INSERT INTO messaging_job (
  tenant_id, guid, kind, source, run_key, template_key, asked_template_version, template_version, content_hash,
  source_at, bucket, key_version, correlation_id, traceparent, created_at
)
SELECT
  :tenant_id, g.value ->> 'guid', g.value ->> 'kind', g.value ->> 'source', g.value ->> 'run_key',
  g.value ->> 'template_key', g.value ->> 'asked_template_version', g.value ->> 'template_version',
  g.value ->> 'content_hash', g.value ->> 'source_at', g.value ->> 'bucket', g.value ->> 'key_version',
  g.value ->> 'correlation_id', g.value ->> 'traceparent', clarion_now()
FROM json_each(:items) AS g
WHERE NOT EXISTS (SELECT 1 FROM messaging_job AS j WHERE j.tenant_id = :tenant_id AND j.guid = g.value ->> 'guid')
ORDER BY g.value ->> 'guid', g.key
ON CONFLICT (tenant_id, guid) DO NOTHING
RETURNING id;

-- name: read_messaging_jobs
-- In this order, by CROSS JOIN, so that each row is looked up.
SELECT
  j.id, j.guid, j.kind, j.source, j.run_key, j.template_key, j.asked_template_version, j.template_version,
  j.content_hash, j.source_at, j.bucket, j.key_version, j.correlation_id, j.traceparent
FROM json_each(:items) AS g
CROSS JOIN messaging_job AS j ON j.tenant_id = :tenant_id AND j.guid = g.value ->> 'guid';

-- name: insert_address_versions
-- As every insert of an ensure. The ciphertext of a serial that is taken is not even looked at: its nonce makes it
-- differ each time, so it is the key hash and the index that are compared.
INSERT INTO address_version (
  tenant_id, recipient_id_hash, channel, serial, key_hash, destination_index, ciphertext, correlation_id, created_at
)
SELECT
  :tenant_id, g.value ->> 'recipient_id_hash', g.value ->> 'channel', g.value ->> 'serial', g.value ->> 'key_hash',
  g.value ->> 'destination_index', clarion_bytes(g.value ->> 'ciphertext'), g.value ->> 'correlation_id',
  clarion_now()
FROM json_each(:items) AS g
WHERE NOT EXISTS (
  SELECT 1
  FROM address_version AS a
  WHERE
    a.tenant_id = :tenant_id AND a.recipient_id_hash = g.value ->> 'recipient_id_hash'
    AND a.channel = g.value ->> 'channel' AND a.serial = g.value ->> 'serial'
)
ORDER BY g.value ->> 'recipient_id_hash', g.value ->> 'channel', g.value ->> 'serial', g.key
ON CONFLICT (tenant_id, recipient_id_hash, channel, serial) DO NOTHING
RETURNING id;

-- name: read_address_versions
-- In this order, by CROSS JOIN, so that each row is looked up.
SELECT
  a.id, a.recipient_id_hash, a.channel, a.serial, a.key_hash, a.destination_index, a.ciphertext, a.correlation_id
FROM json_each(:items) AS g
CROSS JOIN address_version AS a
  ON
    a.tenant_id = :tenant_id AND a.recipient_id_hash = g.value ->> 'recipient_id_hash'
    AND a.channel = g.value ->> 'channel' AND a.serial = g.value ->> 'serial';

-- name: insert_user_messages
-- As every insert of an ensure; the bucket is part of the key, so that retention can drop a month. An item whose hold no
-- longer stands makes no row.
INSERT INTO user_message (
  tenant_id, bucket, partition_key, row_key, message_id, recipient_id_hash, job_row_key, event_type, content,
  correlation_id, traceparent, created_at
)
SELECT
  :tenant_id, g.value ->> 'bucket', g.value ->> 'partition_key', g.value ->> 'row_key', g.value ->> 'message_id',
  g.value ->> 'recipient_id_hash', g.value ->> 'job_row_key', g.value ->> 'event_type',
  clarion_bytes(g.value ->> 'content'), g.value ->> 'correlation_id', g.value ->> 'traceparent', clarion_now()
FROM json_each(:items) AS g
WHERE NOT EXISTS (
  SELECT 1
  FROM user_message AS u
  WHERE
    u.tenant_id = :tenant_id AND u.bucket = g.value ->> 'bucket' AND u.partition_key = g.value ->> 'partition_key'
    AND u.row_key = g.value ->> 'row_key'
) AND (
  g.value ->> '$.hold' IS NULL
  OR EXISTS (
    SELECT 1
    FROM notification_scheduler AS h
    WHERE
      h.id = g.value ->> '$.hold[0]' AND h.tenant_id = :tenant_id AND h.version = g.value ->> '$.hold[1]'
      AND h.status = 'Processing'
  )
)
ORDER BY g.value ->> 'bucket', g.value ->> 'partition_key', g.value ->> 'row_key', g.key
ON CONFLICT (tenant_id, bucket, partition_key, row_key) DO NOTHING
RETURNING id;

-- name: read_user_messages
-- In this order, by CROSS JOIN, so that each row is looked up.
SELECT
  u.id, u.bucket, u.partition_key, u.row_key, u.message_id, u.recipient_id_hash, u.job_row_key, u.event_type,
  u.content, u.correlation_id, u.traceparent
FROM json_each(:items) AS g
CROSS JOIN user_message AS u
  ON
    u.tenant_id = :tenant_id AND u.bucket = g.value ->> 'bucket' AND u.partition_key = g.value ->> 'partition_key'
    AND u.row_key = g.value ->> 'row_key';

-- name: insert_messaging_jobs
-- The look-up, the order and ON CONFLICT as in every insert of an ensure: a repeat writes nothing, a race has one
-- winner, two callers cannot deadlock.
INSERT INTO messaging_job (
  tenant_id, created_at, guid, kind, source, run_key, template_key, asked_template_version, template_version,
  content_hash, source_at, bucket, key_version, correlation_id, traceparent
)
SELECT :tenant_id, now(), g.*
FROM {
  items: guid guid, kind text, source text, run_key text, template_key text, asked_template_version whole,
  template_version whole, content_hash text, source_at instant, bucket whole, key_version whole, correlation_id text,
  traceparent text
} AS g
WHERE (SELECT j.id FROM messaging_job AS j WHERE j.tenant_id = :tenant_id AND j.guid = g.guid) IS NULL
ORDER BY g.guid
ON CONFLICT DO NOTHING
RETURNING id;

-- name: read_messaging_jobs
-- Whoever made them.
SELECT j.*
FROM {items: guid guid} AS g
JOIN messaging_job AS j ON j.tenant_id = :tenant_id AND j.guid = g.guid;

-- name: insert_address_versions
-- As every insert of an ensure, but for the serial, which is counted here: the next one of its recipient and channel, and
-- those of one set by turns. Whoever counts at the same time wants the same first number and waits there for the other
-- one's end, so the numbers of a destination that two made at once are in the order of their commits.
INSERT INTO address_version (
  tenant_id, created_at, recipient_id_hash, channel, serial, key_hash, destination_index, ciphertext, correlation_id
)
SELECT
  :tenant_id, now(), g.recipient_id_hash, g.channel,
  (
    SELECT coalesce(max(l.serial), 0)
    FROM address_version AS l
    WHERE l.tenant_id = :tenant_id AND l.recipient_id_hash = g.recipient_id_hash AND l.channel = g.channel
  ) + row_number() OVER (PARTITION BY g.recipient_id_hash, g.channel ORDER BY g.place),
  g.key_hash, g.destination_index, g.ciphertext, g.correlation_id
FROM {
  items: recipient_id_hash text, channel text, key_hash text, destination_index text, ciphertext bytes,
  correlation_id text, place place
} AS g
WHERE (
  SELECT min(a.id)
  FROM address_version AS a
  WHERE
    a.tenant_id = :tenant_id AND a.recipient_id_hash = g.recipient_id_hash AND a.channel = g.channel
    AND a.key_hash = g.key_hash
) IS NULL
ORDER BY g.recipient_id_hash, g.channel, g.place
ON CONFLICT DO NOTHING
RETURNING id;

-- name: read_address_versions
-- Whoever made them. The first version of a destination comes last: it is the one that counts, should there be others.
SELECT a.*
FROM {items: recipient_id_hash text, channel text, key_hash text} AS g
JOIN address_version AS a
  ON
    a.tenant_id = :tenant_id AND a.recipient_id_hash = g.recipient_id_hash AND a.channel = g.channel
    AND a.key_hash = g.key_hash
ORDER BY a.serial DESC;

-- name: insert_person_versions
-- As every insert of an ensure, but for the serial, which is counted here: the next one of its person, and those of one
-- person in one set by turns. Somebody else may take it meanwhile; then its row is not made, and the caller begins again.
INSERT INTO person_version (tenant_id, created_at, recipient_id_hash, profile_hash, serial, profile, correlation_id)
SELECT
  :tenant_id, now(), g.recipient_id_hash, g.profile_hash,
  (
    SELECT coalesce(max(l.serial), 0)
    FROM person_version AS l
    WHERE l.tenant_id = :tenant_id AND l.recipient_id_hash = g.recipient_id_hash
  ) + row_number() OVER (PARTITION BY g.recipient_id_hash ORDER BY g.place),
  g.profile, g.correlation_id
FROM {items: recipient_id_hash text, profile_hash text, profile bytes, correlation_id text, place place} AS g
WHERE (
  SELECT v.id
  FROM person_version AS v
  WHERE
    v.tenant_id = :tenant_id AND v.recipient_id_hash = g.recipient_id_hash AND v.profile_hash = g.profile_hash
) IS NULL
ORDER BY g.recipient_id_hash, g.place
ON CONFLICT DO NOTHING
RETURNING id;

-- name: read_person_versions
-- Whoever made them.
SELECT v.*
FROM {items: recipient_id_hash text, profile_hash text} AS g
JOIN person_version AS v
  ON v.tenant_id = :tenant_id AND v.recipient_id_hash = g.recipient_id_hash AND v.profile_hash = g.profile_hash;

-- name: insert_user_messages
-- As every insert of an ensure; the bucket is part of the key, so that retention can drop a month. An item whose hold no
-- longer stands makes no row. A scheduler row is locked only if a row of its is missing: a repeat must write nothing,
-- and a lock is a write; but a cancel must wait for those who insert, and be seen by those who come after it. Whoever
-- makes a line enters it in the same transaction, so it is in its inbox.
WITH missing AS MATERIALIZED (
  SELECT g.*
  FROM {
    items: bucket whole, partition_key text, row_key text, message_id guid, recipient_id_hash text, job_row_key text,
    event_type text, category text, expires_at instant, content bytes, correlation_id text, traceparent text,
    hold_id whole, hold_version whole
  } AS g
  WHERE (
    SELECT u.id
    FROM user_message AS u
    WHERE
      u.tenant_id = :tenant_id AND u.bucket = g.bucket AND u.partition_key = g.partition_key AND u.row_key = g.row_key
  ) IS NULL
), held AS MATERIALIZED (
  SELECT s.id, s.version
  FROM (
    SELECT DISTINCT m.hold_id, m.hold_version FROM missing AS m WHERE m.hold_id IS NOT NULL ORDER BY m.hold_id
  ) AS h
  JOIN notification_scheduler AS s
    ON s.id = h.hold_id AND s.version = h.hold_version AND s.tenant_id = :tenant_id AND s.status = 'Processing'
  FOR SHARE OF s
)
INSERT INTO user_message (
  tenant_id, created_at, in_inbox, bucket, partition_key, row_key, message_id, recipient_id_hash, job_row_key,
  event_type, category, expires_at, content, correlation_id, traceparent
)
SELECT
  :tenant_id, now(), true, m.bucket, m.partition_key, m.row_key, m.message_id, m.recipient_id_hash, m.job_row_key,
  m.event_type, m.category, m.expires_at, m.content, m.correlation_id, m.traceparent
FROM missing AS m
WHERE m.hold_id IS NULL OR (m.hold_id, m.hold_version) IN (SELECT h.id, h.version FROM held AS h)
ORDER BY m.bucket, m.partition_key, m.row_key
ON CONFLICT DO NOTHING
RETURNING id;

-- name: read_user_messages
-- Whoever made them.
SELECT u.*
FROM {items: bucket whole, partition_key text, row_key text} AS g
JOIN user_message AS u
  ON
    u.tenant_id = :tenant_id AND u.bucket = g.bucket AND u.partition_key = g.partition_key AND u.row_key = g.row_key;

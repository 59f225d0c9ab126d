-- name: count_lines
-- The counters of inboxes that get new lines, made with the first one. In the order of the key, so that two who enter
-- lines into the same inboxes wait for each other and never deadlock.
INSERT INTO inbox_count (tenant_id, recipient_id_hash, lines, unseen, unread)
SELECT g.tenant_id, g.recipient_id_hash, g.n, g.n, g.n
FROM {inboxes: tenant_id text, recipient_id_hash text, n whole} AS g
WHERE true
ORDER BY g.tenant_id COLLATE "C", g.recipient_id_hash COLLATE "C"
ON CONFLICT (tenant_id, recipient_id_hash) DO UPDATE
SET
  lines = inbox_count.lines + excluded.lines,
  unseen = inbox_count.unseen + excluded.unseen,
  unread = inbox_count.unread + excluded.unread;

-- name: insert_states
-- Of lines that were just counted, whose inboxes are locked by that: what was done to all lines before was not done to
-- these.
INSERT INTO inbox_state (tenant_id, recipient_id_hash, row_key, bucket, user_message_id, mark, expires_at)
SELECT g.tenant_id, g.recipient_id_hash, g.row_key, g.bucket, g.id, c.mark, g.expires_at
FROM {
  lines: tenant_id text, recipient_id_hash text, row_key text, bucket whole, id whole, expires_at instant
} AS g
JOIN inbox_count AS c ON c.tenant_id = g.tenant_id AND c.recipient_id_hash = g.recipient_id_hash;

-- name: lock_lines_outside
-- Lines of a program that knew of no counts. One that somebody else is entering is theirs.
SELECT u.tenant_id, u.recipient_id_hash, u.row_key, u.bucket, u.id, u.expires_at
FROM user_message AS u
WHERE NOT u.in_inbox
ORDER BY u.id
LIMIT :limit
FOR UPDATE SKIP LOCKED;

-- name: note_entered
-- They have their rows now. Their months are named too, for the primary key of PostgreSQL.
UPDATE user_message SET in_inbox = true WHERE id IN {ids: whole} AND bucket IN {buckets: whole};

-- name: list_lines
-- Pages by the index of an inbox, newest first. What has expired is in no list from that moment on, swept or not.
SELECT
  u.id, u.bucket, u.partition_key, u.row_key, u.message_id, u.job_row_key, u.event_type, u.category, u.created_at,
  u.expires_at, found.mark AS line_mark, found.seen_at, found.read_at, found.archived_at, c.*
FROM (
  SELECT i.*
  FROM inbox_state AS i
  WHERE
    i.tenant_id = :tenant_id AND i.recipient_id_hash = :recipient_id_hash AND i.row_key > :after AND NOT i.swept
    AND (i.expires_at IS NULL OR i.expires_at > now())
  ORDER BY i.row_key
  LIMIT :limit
) AS found
JOIN inbox_count AS c ON c.tenant_id = found.tenant_id AND c.recipient_id_hash = found.recipient_id_hash
JOIN user_message AS u ON u.bucket = found.bucket AND u.id = found.user_message_id
ORDER BY found.row_key;

-- name: find_contents
-- By the primary key; a line of another tenant is not found. That is asked of what was found: as a part of the look-up
-- it would let PostgreSQL take the index that begins with the tenant and the month.
SELECT u.id, u.content
FROM {lines: bucket whole, id whole} AS g
JOIN user_message AS u ON u.bucket = g.bucket AND u.id = g.id
WHERE u.tenant_id = :tenant_id AND u.content IS NOT NULL;

-- name: count_inbox
-- One row, however many lines there are, and one look at the index of those that expire.
SELECT
  c.lines, c.unseen, c.unread, c.archived, c.archived_unseen, c.archived_unread,
  EXISTS (
    SELECT 1
    FROM inbox_state AS s
    WHERE
      s.tenant_id = :tenant_id AND s.recipient_id_hash = :recipient_id_hash AND s.expires_at IS NOT NULL
      AND s.expires_at <= now()
  ) AS has_expired
FROM inbox_count AS c
WHERE c.tenant_id = :tenant_id AND c.recipient_id_hash = :recipient_id_hash;

-- name: lock_inboxes
-- Whoever changes a line holds its inbox first, in the order of the key, and reads the lines after that: nobody else
-- changes them then.
SELECT c.*, now() AS now
FROM {inboxes: tenant_id text, recipient_id_hash text} AS g
JOIN inbox_count AS c ON c.tenant_id = g.tenant_id AND c.recipient_id_hash = g.recipient_id_hash
FOR UPDATE;

-- name: read_lines_of_messages
-- The lines of an inbox that is held; one that has expired is there no longer.
SELECT
  s.tenant_id, s.recipient_id_hash, s.bucket, s.user_message_id, u.message_id, s.mark, s.seen_at, s.read_at,
  s.archived_at
FROM {messages: message_id guid} AS g
JOIN user_message AS u
  ON u.tenant_id = :tenant_id AND u.message_id = g.message_id AND u.recipient_id_hash = :recipient_id_hash
JOIN inbox_state AS s ON s.bucket = u.bucket AND s.user_message_id = u.id AND NOT s.swept
WHERE s.expires_at IS NULL OR s.expires_at > now();

-- name: find_expired_lines
-- Those that expired first, of all inboxes.
SELECT s.tenant_id, s.recipient_id_hash, s.bucket, s.user_message_id
FROM inbox_state AS s
WHERE s.expires_at IS NOT NULL AND s.expires_at <= now()
ORDER BY s.expires_at
LIMIT :limit;

-- name: find_expired_lines_of_inbox
-- Those that expired first, of one inbox.
SELECT s.tenant_id, s.recipient_id_hash, s.bucket, s.user_message_id
FROM inbox_state AS s
WHERE
  s.tenant_id = :tenant_id AND s.recipient_id_hash = :recipient_id_hash AND s.expires_at IS NOT NULL
  AND s.expires_at <= now()
ORDER BY s.expires_at
LIMIT :limit;

-- name: read_expired_lines
-- A statement of its own once their inboxes are held: somebody else may have swept them meanwhile.
SELECT
  s.tenant_id, s.recipient_id_hash, s.bucket, s.user_message_id, s.mark, s.seen_at, s.read_at, s.archived_at
FROM {lines: bucket whole, user_message_id whole} AS g
JOIN inbox_state AS s
  ON
    s.bucket = g.bucket AND s.user_message_id = g.user_message_id AND s.expires_at IS NOT NULL
    AND s.expires_at <= now();

-- name: write_states
-- Of lines whose inbox is held.
UPDATE inbox_state AS s
SET mark = g.mark, seen_at = g.seen_at, read_at = g.read_at, archived_at = g.archived_at
FROM {
  rows: bucket whole, user_message_id whole, mark whole, seen_at instant, read_at instant, archived_at instant
} AS g
WHERE s.bucket = +g.bucket AND s.user_message_id = +g.user_message_id;

-- name: sweep_states
-- They are in no index of an inbox any more.
UPDATE inbox_state AS s
SET swept = true, expires_at = NULL
FROM {lines: bucket whole, user_message_id whole} AS g
WHERE s.bucket = +g.bucket AND s.user_message_id = +g.user_message_id;

-- name: write_inboxes
-- Counters and marks of inboxes that are held.
UPDATE inbox_count AS c
SET
  lines = g.lines,
  unseen = g.unseen,
  unread = g.unread,
  archived = g.archived,
  archived_unseen = g.archived_unseen,
  archived_unread = g.archived_unread,
  mark = g.mark,
  seen_mark = g.seen_mark,
  read_mark = g.read_mark,
  unread_mark = g.unread_mark,
  archived_mark = g.archived_mark,
  unarchived_mark = g.unarchived_mark,
  all_seen_at = g.all_seen_at,
  all_read_at = g.all_read_at,
  all_archived_at = g.all_archived_at
FROM {
  inboxes: tenant_id text, recipient_id_hash text, lines whole, unseen whole, unread whole, archived whole,
  archived_unseen whole, archived_unread whole, mark whole, seen_mark whole, read_mark whole, unread_mark whole,
  archived_mark whole, unarchived_mark whole, all_seen_at instant, all_read_at instant, all_archived_at instant
} AS g
WHERE c.tenant_id = g.tenant_id AND c.recipient_id_hash = g.recipient_id_hash;

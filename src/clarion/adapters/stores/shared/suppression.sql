-- name: lock_suppressions
-- Those of the given that are there, in the order of the set, which the caller has sorted.
SELECT s.tenant_id, s.subject, s.scope, s.cause, s.note, s.created_by, s.created_at
FROM {keys: tenant_id text, subject text, scope text} AS g
JOIN suppression AS s ON s.tenant_id = g.tenant_id AND s.subject = g.subject AND s.scope = g.scope
FOR UPDATE;

-- name: insert_suppressions
-- Those that nobody has made since they were looked for; the caller begins again where one is missing in the answer.
INSERT INTO suppression (tenant_id, subject, scope, cause, note, created_by, created_at)
SELECT g.tenant_id, g.subject, g.scope, g.cause, g.note, :actor, now()
FROM {items: tenant_id text, subject text, scope text, cause text, note text} AS g
WHERE true
ORDER BY g.tenant_id, g.subject, g.scope
ON CONFLICT (tenant_id, subject, scope) DO NOTHING
RETURNING subject, scope;

-- name: take_over_suppressions
-- Rows that are locked, for a stronger cause. They stay as old as they are: since then nothing was sent. All of them are
-- there, so nothing is inserted; written so, each is found by its key on both engines.
INSERT INTO suppression (tenant_id, subject, scope, cause, note, created_by, created_at)
SELECT g.tenant_id, g.subject, g.scope, g.cause, g.note, :actor, now()
FROM {items: tenant_id text, subject text, scope text, cause text, note text} AS g
WHERE true
ORDER BY g.tenant_id, g.subject, g.scope
ON CONFLICT (tenant_id, subject, scope) DO UPDATE
SET cause = excluded.cause, note = excluded.note, created_by = excluded.created_by;

-- name: delete_suppressions
-- Rows that are locked, so all of them are there.
DELETE FROM suppression AS s
WHERE
  s.tenant_id IN {tenants: text} AND s.subject IN {subjects: text}
  AND EXISTS (
    SELECT 1
    FROM {keys: tenant_id text, subject text, scope text} AS g
    WHERE g.tenant_id = s.tenant_id AND g.subject = s.subject AND g.scope = s.scope
  );

-- name: list_suppressions
-- Pages by the index of the newest, from its end.
SELECT s.subject, s.scope, s.cause, s.note, s.created_by, s.created_at
FROM suppression AS s
WHERE s.tenant_id = :tenant_id AND (s.created_at, s.subject, s.scope) < (:created_at, :subject, :scope)
ORDER BY s.created_at DESC, s.subject DESC, s.scope DESC
LIMIT :limit;

-- name: list_suppressions_by_cause
-- By the index of causes, from its end; those that came at one moment are put in order. The cause is compared and
-- ordered by too, so that no other index will do: that of the newest would be walked to its end for a rare cause.
SELECT s.subject, s.scope, s.cause, s.note, s.created_by, s.created_at
FROM suppression AS s
WHERE
  s.tenant_id = :tenant_id AND s.cause >= :cause AND (s.cause, s.created_at) <= (:cause, :created_at)
  AND (s.created_at, s.subject, s.scope) < (:created_at, :subject, :scope)
ORDER BY s.cause DESC, s.created_at DESC, s.subject DESC, s.scope DESC
LIMIT :limit;

-- name: list_suppressions_of
-- A subject has few: at most one for everything and one for each category and channel.
SELECT s.subject, s.scope, s.cause, s.note, s.created_by, s.created_at
FROM suppression AS s
WHERE
  s.tenant_id = :tenant_id AND s.subject IN {subjects: text}
  AND (CAST(:cause AS text) IS NULL OR s.cause = CAST(:cause AS text))
  AND (s.created_at, s.subject, s.scope) < (:created_at, :subject, :scope)
ORDER BY s.created_at DESC, s.subject DESC, s.scope DESC
LIMIT :limit;

-- name: find_suppressions
-- By the primary key: one look for each subject.
SELECT s.subject, s.scope, s.cause
FROM {subjects: subject text} AS g
JOIN suppression AS s ON s.tenant_id = :tenant_id AND s.subject = g.subject;

-- name: find_suppressed_addresses
-- Of the versions with one index any would do: all hold the same address. The newest opens with the newest key.
SELECT a.*
FROM {subjects: subject text} AS g
JOIN address_version AS a
  ON
    a.tenant_id = :tenant_id AND a.destination_index = g.subject
    AND a.id = (
      SELECT max(l.id) FROM address_version AS l WHERE l.tenant_id = :tenant_id AND l.destination_index = g.subject
    );

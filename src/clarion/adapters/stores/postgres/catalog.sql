-- name: insert_template
-- A new version only if the latest has other content. Of two who publish at once, the second takes the version after the
-- first one's, or none: it finds the number taken and looks again.
INSERT INTO template (tenant_id, template_key, version, content_hash, bundle)
SELECT $1, $2, coalesce(last.version, 0) + 1, $3, $4
FROM (SELECT 1) AS always
LEFT JOIN LATERAL (
  SELECT found.version, found.content_hash
  FROM template AS found
  WHERE found.tenant_id = $1 AND found.template_key = $2
  ORDER BY found.version DESC
  LIMIT 1
) AS last ON true
WHERE last.content_hash IS DISTINCT FROM $3
ON CONFLICT DO NOTHING
RETURNING version;

-- name: read_latest_template
-- The first of the index read backwards.
SELECT template_key, version, content_hash, bundle
FROM template
WHERE tenant_id = $1 AND template_key = $2
ORDER BY version DESC
LIMIT 1;

-- name: list_templates
-- From key to key along the index, so that old versions are passed over and not read.
WITH RECURSIVE latest AS (
  (
    SELECT found.template_key, found.version, found.content_hash, found.bundle
    FROM template AS found
    WHERE found.tenant_id = $1
    ORDER BY found.template_key DESC, found.version DESC
    LIMIT 1
  )
  UNION ALL
  SELECT next.template_key, next.version, next.content_hash, next.bundle
  FROM latest
  CROSS JOIN LATERAL (
    SELECT found.template_key, found.version, found.content_hash, found.bundle
    FROM template AS found
    WHERE found.tenant_id = $1 AND found.template_key < latest.template_key
    ORDER BY found.template_key DESC, found.version DESC
    LIMIT 1
  ) AS next
)
SELECT template_key, version, content_hash, bundle FROM latest ORDER BY template_key COLLATE "C";

-- name: put_people
-- Insert or replace, sorted, so that two who write the same people wait for each other.
INSERT INTO person (tenant_id, recipient_id_hash, domain, person_id, profile)
SELECT $1, g.recipient_id_hash, g.domain, g.person_id, g.profile
FROM unnest($2::text[], $3::text[], $4::text[], $5::bytea[]) AS g (recipient_id_hash, domain, person_id, profile)
ORDER BY g.recipient_id_hash
ON CONFLICT (tenant_id, recipient_id_hash) DO UPDATE SET profile = excluded.profile;

-- name: delete_contacts
-- All contacts of these people; the current ones follow. After the people are locked by their own insert or update.
DELETE FROM contact
WHERE ctid = ANY (ARRAY(
  SELECT c.ctid
  FROM unnest($2::text[]) AS g (recipient_id_hash)
  CROSS JOIN LATERAL (
    SELECT found.ctid
    FROM contact AS found
    WHERE found.tenant_id = $1 AND found.recipient_id_hash = g.recipient_id_hash
    OFFSET 0
  ) AS c
));

-- name: put_contacts
-- The channel is the address version's own.
INSERT INTO contact (tenant_id, recipient_id_hash, channel, address_id)
SELECT $1, g.recipient_id_hash, a.channel, g.address_id
FROM unnest($2::text[], $3::bigint[]) AS g (recipient_id_hash, address_id)
CROSS JOIN LATERAL (
  SELECT found.channel FROM address_version AS found WHERE found.id = g.address_id AND found.tenant_id = $1 LIMIT 1
) AS a
ORDER BY g.recipient_id_hash, a.channel, g.address_id
ON CONFLICT DO NOTHING;

-- name: put_group
-- Locks the group, so that of two who replace its members one waits.
INSERT INTO audience_group (tenant_id, guid, name)
VALUES ($1, $2, $3)
ON CONFLICT (tenant_id, guid) DO UPDATE SET name = excluded.name;

-- name: delete_members
-- Those who are members no longer.
DELETE FROM group_member WHERE tenant_id = $1 AND group_guid = $2 AND recipient_id_hash <> ALL ($3::text[]);

-- name: put_members
-- Those who are not members yet.
INSERT INTO group_member (tenant_id, group_guid, recipient_id_hash)
SELECT $1, $2, g.recipient_id_hash
FROM unnest($3::text[]) AS g (recipient_id_hash)
ORDER BY g.recipient_id_hash
ON CONFLICT DO NOTHING;

-- name: set_type_enabled
-- One row once anybody has switched it off; what is so already stays, with the name of who made it so.
INSERT INTO type_setting AS s (tenant_id, event_type, enabled, changed_by)
SELECT $1, $2, $3::boolean, $4
WHERE
  NOT $3::boolean
  OR EXISTS (SELECT FROM type_setting AS found WHERE found.tenant_id = $1 AND found.event_type = $2)
ON CONFLICT (tenant_id, event_type) DO UPDATE
SET enabled = excluded.enabled, changed_by = excluded.changed_by, changed_at = now()
WHERE s.enabled <> excluded.enabled
RETURNING s.event_type;

-- name: put_api_key
-- A key id is random: one that is taken was minted by the same request before.
INSERT INTO api_key (key_id, tenant_id, secret_hash, actor, role, created_at, expires_at, revoked_at)
VALUES ($1, $2, $3, $4, $5, coalesce($6::timestamptz, now()), $7, $8)
ON CONFLICT DO NOTHING
RETURNING key_id;

-- name: find_api_key
-- By the public id, before it is known whose key it is.
SELECT key_id, tenant_id, secret_hash, actor, role, created_at, expires_at, revoked_at
FROM api_key
WHERE key_id = $1;

-- name: list_api_keys
-- A tenant has a handful.
SELECT key_id, tenant_id, secret_hash, actor, role, created_at, expires_at, revoked_at
FROM api_key
WHERE tenant_id = $1
ORDER BY created_at, key_id;

-- name: revoke_api_key
-- Once: a second revocation does not move the first one's time.
UPDATE api_key SET revoked_at = now() WHERE key_id = $2 AND tenant_id = $1 AND revoked_at IS NULL RETURNING key_id;

-- name: resolve_support_case
-- Open to Resolved, by the condition on its state.
UPDATE support_case
SET status = 'Resolved', resolved_at = now(), resolved_by = $3, resolution = $4
WHERE tenant_id = $1 AND case_id = $2 AND status = ANY ($5::text[])
RETURNING case_id;

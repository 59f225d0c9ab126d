-- name: read_latest_template
-- What stands, before anything is published: the primary key ends in the version.
SELECT template_key, version, content_hash, bundle
FROM template
WHERE tenant_id = :tenant_id AND template_key = :template_key
ORDER BY version DESC
LIMIT 1;

-- name: insert_template
-- A published version never changes, so this is all that is ever written of one.
INSERT INTO template (tenant_id, template_key, version, content_hash, bundle, created_at)
VALUES (:tenant_id, :template_key, :version, :content_hash, :bundle, clarion_now());

-- name: list_templates
-- All that a tenant has published, which is tens; of each key the row with its highest version.
SELECT t.template_key, max(t.version) AS version, t.content_hash, t.bundle
FROM template AS t
WHERE t.tenant_id = :tenant_id
GROUP BY t.template_key
ORDER BY t.template_key;

-- name: put_people
-- The hash decides who somebody is, so domain and id are what they were.
INSERT INTO person (tenant_id, recipient_id_hash, domain, person_id, profile)
SELECT
  :tenant_id, g.value ->> 'recipient_id_hash', g.value ->> 'domain', g.value ->> 'person_id',
  clarion_bytes(g.value ->> 'profile')
FROM json_each(:people) AS g
WHERE true
ORDER BY g.key
ON CONFLICT (tenant_id, recipient_id_hash) DO UPDATE
SET domain = excluded.domain, person_id = excluded.person_id, profile = excluded.profile;

-- name: delete_contacts
-- Whoever is put has the contacts that come with it and no others.
DELETE FROM contact
WHERE
  tenant_id = :tenant_id
  AND recipient_id_hash IN (SELECT g.value ->> 'recipient_id_hash' FROM json_each(:people) AS g);

-- name: insert_contacts
-- The channel is the address version's. One that is another's, or nobody's, makes no row and is found by the count.
INSERT INTO contact (tenant_id, recipient_id_hash, channel, address_id)
SELECT :tenant_id, a.recipient_id_hash, a.channel, a.id
FROM json_each(:contacts) AS g
CROSS JOIN address_version AS a
  ON a.id = g.value ->> 1 AND a.tenant_id = :tenant_id AND a.recipient_id_hash = g.value ->> 0
RETURNING address_id;

-- name: put_group
-- The guid decides which group it is; its name may change.
INSERT INTO audience_group (tenant_id, guid, name)
VALUES (:tenant_id, :guid, :name)
ON CONFLICT (tenant_id, guid) DO UPDATE SET name = excluded.name;

-- name: delete_members
-- Before the new ones: whoever is not among them is no member any more.
DELETE FROM group_member WHERE tenant_id = :tenant_id AND group_guid = :guid;

-- name: insert_members
-- Whether somebody is known is asked when a message is made, not here.
INSERT INTO group_member (tenant_id, group_guid, recipient_id_hash)
SELECT :tenant_id, :guid, g.value
FROM json_each(:members) AS g
WHERE true
ON CONFLICT (tenant_id, group_guid, recipient_id_hash) DO NOTHING;

-- name: set_type_enabled
-- One row once anybody has switched it off; what is so already stays, with the name of who made it so.
INSERT INTO type_setting (tenant_id, event_type, enabled, changed_by, changed_at)
SELECT :tenant_id, :event_type, :enabled, :actor, clarion_now()
WHERE
  NOT :enabled
  OR EXISTS (SELECT 1 FROM type_setting AS s WHERE s.tenant_id = :tenant_id AND s.event_type = :event_type)
ON CONFLICT (tenant_id, event_type) DO UPDATE
SET enabled = excluded.enabled, changed_by = excluded.changed_by, changed_at = excluded.changed_at
WHERE type_setting.enabled <> excluded.enabled
RETURNING event_type;

-- name: insert_api_key
-- A key id is random: one that is taken was minted by the same request before.
INSERT INTO api_key (key_id, tenant_id, secret_hash, actor, role, created_at, expires_at, revoked_at)
SELECT
  g.value ->> 'key_id', g.value ->> 'tenant_id', g.value ->> 'secret_hash', g.value ->> 'actor', g.value ->> 'role',
  coalesce(g.value ->> 'created_at', clarion_now()), g.value ->> 'expires_at', g.value ->> 'revoked_at'
FROM json_each(:items) AS g
WHERE true
ON CONFLICT (key_id) DO NOTHING
RETURNING key_id;

-- name: find_api_key
-- For every request that comes in.
SELECT key_id, tenant_id, secret_hash, actor, role, created_at, expires_at, revoked_at
FROM api_key
WHERE key_id = :key_id;

-- name: list_api_keys
-- A tenant has few. The row's number is the order in which they were made, also within a microsecond.
SELECT k.key_id, k.tenant_id, k.secret_hash, k.actor, k.role, k.created_at, k.expires_at, k.revoked_at
FROM api_key AS k
WHERE k.tenant_id = :tenant_id
ORDER BY k.created_at, k.rowid;

-- name: revoke_api_key
-- Once: who revoked it first is who did.
UPDATE api_key
SET revoked_at = clarion_now()
WHERE key_id = :key_id AND tenant_id = :tenant_id AND revoked_at IS NULL
RETURNING key_id;

-- name: resolve_support_case
-- Open → Resolved and no other move, so that two who resolve at once are one resolution.
UPDATE support_case
SET status = 'Resolved', resolved_at = clarion_now(), resolved_by = :actor, resolution = :resolution
WHERE tenant_id = :tenant_id AND case_id = :case_id AND status = 'Open'
RETURNING case_id;

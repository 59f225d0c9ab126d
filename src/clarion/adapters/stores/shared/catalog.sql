-- name: read_latest_template
-- What stands, before anything is published: the primary key ends in the version.
SELECT template_key, version, content_hash, bundle, quarantined_at IS NOT NULL AS quarantined
FROM template
WHERE tenant_id = :tenant_id AND template_key = :template_key
ORDER BY version DESC
LIMIT 1;

-- name: insert_template
-- Of two who publish at once, the second finds its number taken and looks again.
INSERT INTO template (tenant_id, template_key, version, content_hash, bundle, created_at)
VALUES (:tenant_id, :template_key, :version, :content_hash, :bundle, now())
ON CONFLICT DO NOTHING;

-- name: list_template_versions
-- Without the bundles, which are large and asked for one by one.
SELECT version, content_hash, created_at, quarantined_at
FROM template
WHERE tenant_id = :tenant_id AND template_key = :template_key
ORDER BY version DESC
LIMIT :limit;

-- name: list_templates
-- From key to key along the index, so that old versions are passed over and not read.
WITH RECURSIVE latest (template_key) AS (
  SELECT max(t.template_key) FROM template AS t WHERE t.tenant_id = :tenant_id AND t.template_key > ''
  UNION ALL
  SELECT (
    SELECT max(t.template_key) FROM template AS t WHERE t.tenant_id = :tenant_id AND t.template_key < w.template_key
  )
  FROM latest AS w
  WHERE w.template_key IS NOT NULL
)
SELECT t.template_key, t.version, t.content_hash, t.bundle, t.quarantined_at IS NOT NULL AS quarantined
FROM latest AS w
JOIN template AS t
  ON
    t.tenant_id = :tenant_id AND t.template_key = w.template_key
    AND t.version = (
      SELECT max(l.version) FROM template AS l WHERE l.tenant_id = :tenant_id AND l.template_key = w.template_key
    )
ORDER BY t.template_key COLLATE "C";

-- name: lock_tenant_zone
-- As of a business unit.
SELECT tz_id FROM tenant WHERE tenant_id = :tenant_id FOR NO KEY UPDATE;

-- name: set_tenant_form
-- Changes nothing where it is so already.
UPDATE tenant SET locale = :locale, tz_id = :tz_id
WHERE tenant_id = :tenant_id AND (coalesce(locale, '') <> coalesce(:locale, '') OR coalesce(tz_id, '') <> coalesce(:tz_id, ''));

-- name: insert_api_key
-- A key id is random: one that is taken was minted by the same request before.
INSERT INTO api_key (key_id, tenant_id, secret_hash, actor, role, created_at, expires_at, revoked_at)
VALUES (
  :key_id, :tenant_id, :secret_hash, :actor, :role, coalesce(:created_at, now()), :expires_at, :revoked_at
)
ON CONFLICT DO NOTHING;

-- name: find_api_key
-- By the public id, before it is known whose key it is. One that has expired by the store's clock is nobody's: a process
-- whose own clock is behind would believe it.
SELECT
  k.key_id, k.tenant_id, k.secret_hash, k.actor, k.role, k.created_at, k.expires_at, k.revoked_at,
  (
    SELECT u.last_used_at FROM usage_count AS u WHERE u.tenant_id = k.tenant_id AND u.key_id = k.key_id
  ) AS last_used_at
FROM api_key AS k
WHERE k.key_id = :key_id AND (k.expires_at IS NULL OR k.expires_at > now());

-- name: list_api_keys
-- A tenant has a handful. Within a microsecond, the row's own place is the order in which they were made.
SELECT
  k.key_id, k.tenant_id, k.secret_hash, k.actor, k.role, k.created_at, k.expires_at, k.revoked_at,
  (
    SELECT u.last_used_at FROM usage_count AS u WHERE u.tenant_id = k.tenant_id AND u.key_id = k.key_id
  ) AS last_used_at
FROM api_key AS k
WHERE k.tenant_id = :tenant_id
ORDER BY k.created_at, k.ctid;

-- name: revoke_api_key
-- Once: a second revocation does not move the first one's time.
UPDATE api_key SET revoked_at = now() WHERE key_id = :key_id AND tenant_id = :tenant_id AND revoked_at IS NULL;

-- name: quarantine_template
-- Content that was published twice is two versions with the same hash, and both would end a process.
UPDATE template SET quarantined_at = now()
WHERE
  tenant_id = :tenant_id AND template_key = :template_key AND content_hash = :content_hash AND quarantined_at IS NULL
RETURNING version;

-- name: read_case_of_template
-- Whether a case is about a template version, and about which.
SELECT record_key FROM support_case WHERE tenant_id = :tenant_id AND case_id = :case_id AND record = 'Template';

-- name: end_quarantine
-- Somebody has said that the version can be merged again.
UPDATE template SET quarantined_at = NULL
WHERE tenant_id = :tenant_id AND template_key = :template_key AND version = :version;

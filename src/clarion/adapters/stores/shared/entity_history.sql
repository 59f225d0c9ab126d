-- name: write_history
-- A line that is there under its key is replaced: the one upsert there is, by the replay of what wrote it.
INSERT INTO entity_history (tenant_id, entity_guid, row_key, kind, subject, cause, at, text, correlation_id)
SELECT g.*
FROM {
  lines: tenant_id text, entity_guid guid, row_key text, kind text, subject text, cause text, at instant, text text,
  correlation_id text
} AS g
WHERE true
ORDER BY g.tenant_id, g.entity_guid, g.row_key
ON CONFLICT (tenant_id, entity_guid, row_key) DO UPDATE
SET at = excluded.at, text = excluded.text, correlation_id = excluded.correlation_id;

-- name: list_history
-- The newest first; of one moment in the order of their keys.
SELECT h.entity_guid, h.kind, h.subject, h.cause, h.at, h.text, h.correlation_id
FROM entity_history AS h
WHERE
  h.tenant_id = :tenant_id AND h.entity_guid = :entity_guid
  AND (h.at, h.row_key COLLATE "C") < (:before_at, :before_key)
ORDER BY h.at DESC, h.row_key COLLATE "C" DESC
LIMIT :limit;

-- name: list_history_of_subject
-- The same of one subject, by an index of its own: an entity may have thousands of lines about others.
SELECT h.entity_guid, h.kind, h.subject, h.cause, h.at, h.text, h.correlation_id
FROM entity_history AS h
WHERE
  h.tenant_id = :tenant_id AND h.entity_guid = :entity_guid AND h.subject = :subject
  AND (h.at, h.row_key COLLATE "C") < (:before_at, :before_key)
ORDER BY h.at DESC, h.row_key COLLATE "C" DESC
LIMIT :limit;

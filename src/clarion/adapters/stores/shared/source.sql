-- name: read_change_time
-- After the rows are locked and whoever scans has been shut out: two changes of one source have their times in the order
-- of their row versions, and a scan knows of every change before its own time.
SELECT clock_timestamp() AS at;

-- name: lock_sources
-- Those of the given that are there, in the order of the set, which the caller has sorted.
SELECT
  s.source_type, s.source, s.entity_guid, s.business_unit, s.active, s.content, s.content_hash, s.row_version,
  s.changed_at
FROM {keys: source_type text, source text} AS g
JOIN source_record AS s ON s.tenant_id = :tenant_id AND s.source_type = g.source_type AND s.source = g.source
FOR UPDATE;

-- name: insert_sources
-- Those that nobody has made since they were looked for; the caller begins again where one is missing in the answer.
INSERT INTO source_record (
  tenant_id, changed_at, source_type, source, entity_guid, business_unit, active, content, content_hash, row_version
)
SELECT :tenant_id, CAST(:at AS timestamptz), g.*
FROM {
  items: source_type text, source text, entity_guid guid, business_unit guid, active truth, content bytes,
  content_hash text, row_version whole
} AS g
WHERE true
ORDER BY g.source_type, g.source
ON CONFLICT (tenant_id, source_type, source) DO NOTHING
RETURNING source;

-- name: change_sources
-- Rows that are locked. All of them are there, so nothing is inserted; written so, each is found by its key on both
-- engines.
INSERT INTO source_record (
  tenant_id, changed_at, source_type, source, entity_guid, business_unit, active, content, content_hash, row_version
)
SELECT :tenant_id, CAST(:at AS timestamptz), g.*
FROM {
  items: source_type text, source text, entity_guid guid, business_unit guid, active truth, content bytes,
  content_hash text, row_version whole
} AS g
WHERE true
ORDER BY g.source_type, g.source
ON CONFLICT (tenant_id, source_type, source) DO UPDATE
SET
  changed_at = excluded.changed_at, business_unit = excluded.business_unit, active = excluded.active,
  content = excluded.content, content_hash = excluded.content_hash, row_version = excluded.row_version;

-- name: delete_source_days
-- Of sources of one type that are locked.
DELETE FROM source_day
WHERE tenant_id = :tenant_id AND source_type = :source_type AND source IN {sources: text};

-- name: insert_source_days
-- Of sources that are locked, and have none.
INSERT INTO source_day (tenant_id, source_type, source, name, day)
SELECT :tenant_id, g.source_type, g.source, g.name, g.day
FROM {items: source_type text, source text, name text, day date} AS g;

-- name: find_sources
-- By the primary key, those that were removed too.
SELECT
  s.source_type, s.source, s.entity_guid, s.business_unit, s.active, s.content, s.content_hash, s.row_version,
  s.changed_at
FROM {sources: source text} AS g
JOIN source_record AS s ON s.tenant_id = :tenant_id AND s.source_type = :source_type AND s.source = g.source;

-- name: find_source_days
-- A source has some dozens at most. Each is looked up by its primary key: the index of days holds all that is asked for,
-- and SQLite would go through the days of all sources of the type in it, once for each of these.
SELECT d.source, d.name, d.day
FROM {sources: source text} AS g
JOIN source_day AS d /* indexed by sqlite_autoindex_source_day_1 */
  ON d.tenant_id = :tenant_id AND d.source_type = :source_type AND d.source = g.source;

-- name: list_sources
-- Pages by the index of those that are there.
SELECT
  s.source_type, s.source, s.entity_guid, s.business_unit, s.active, s.content, s.content_hash, s.row_version,
  s.changed_at
FROM source_record AS s
WHERE s.tenant_id = :tenant_id AND s.source_type = :source_type AND s.active AND s.source > :after
ORDER BY s.source
LIMIT :limit;

-- name: scan_changed_sources
-- Pages by the index of changes. What changes meanwhile gets a later time, and is left to the next scan.
SELECT
  s.source_type, s.source, s.entity_guid, s.business_unit, s.active, s.content, s.content_hash, s.row_version,
  s.changed_at
FROM source_record AS s
WHERE
  s.tenant_id = :tenant_id AND s.source_type = :source_type AND s.active
  AND (s.changed_at, s.source) > (:after_at, :after) AND s.changed_at <= :until
ORDER BY s.changed_at, s.source
LIMIT :limit;

-- name: scan_source_days
-- Pages by the index of days. A source is found once for each of its dates in the window.
SELECT d.day, d.source, d.name
FROM source_day AS d
WHERE
  d.tenant_id = :tenant_id AND d.source_type = :source_type
  AND (d.day, d.source, d.name) > (:after_day, :after, :after_name) AND d.day <= :until
ORDER BY d.day, d.source, d.name
LIMIT :limit;

-- name: read_serials
-- Before the rows, in a statement of its own: what changes between the two then shows as an overtaken plan, and never as
-- a plan over old rows that is taken for a new one.
SELECT p.source, p.serial
FROM {sources: source text} AS g
JOIN source_plan AS p ON p.tenant_id = :tenant_id AND p.source_type = :source_type AND p.source = g.source;

-- name: read_open_occurrences
-- What of these sources is not over, in the words of the index that holds nothing else.
SELECT s.*
FROM {sources: source text} AS g
JOIN automation_scheduler AS s
  ON s.tenant_id = :tenant_id AND s.source_type = :source_type AND s.source = g.source
  AND (s.status = 'Pending' OR s.status = 'Processing');

-- name: read_states
-- In an order that is the same on both engines.
SELECT t.*
FROM {sources: source text} AS g
JOIN threshold_state AS t ON t.tenant_id = :tenant_id AND t.source_type = :source_type AND t.source = g.source
ORDER BY t.source COLLATE "C", t.setting COLLATE "C", t.metric COLLATE "C", t.scope COLLATE "C";

-- name: count_plans
-- One more for each source whose count is still the one that its plan was made over; the others are not returned, and a
-- plan that comes at the same time waits here for this one to be committed.
INSERT INTO source_plan (tenant_id, source_type, source, serial)
SELECT :tenant_id, g.source_type, g.source, g.serial + 1
FROM {plans: source_type text, source text, serial whole} AS g
WHERE
  g.serial = 0
  OR (
    SELECT p.serial
    FROM source_plan AS p
    WHERE p.tenant_id = :tenant_id AND p.source_type = g.source_type AND p.source = g.source
  ) IS NOT NULL
ORDER BY g.source_type, g.source
ON CONFLICT (tenant_id, source_type, source) DO UPDATE
SET serial = source_plan.serial + 1
WHERE source_plan.serial + 1 = excluded.serial
RETURNING source_type, source;

-- name: write_threshold_states
-- The last truth of each, sorted as every insert.
INSERT INTO threshold_state (tenant_id, source_type, source, setting, metric, scope, met, edge_no)
SELECT :tenant_id, g.*
FROM {
  states: source_type text, source text, setting text, metric text, scope text, met truth, edge_no whole
} AS g
WHERE true
ORDER BY g.source_type, g.source, g.setting, g.metric, g.scope
ON CONFLICT (tenant_id, source_type, source, setting, metric, scope) DO UPDATE
SET met = excluded.met, edge_no = excluded.edge_no;

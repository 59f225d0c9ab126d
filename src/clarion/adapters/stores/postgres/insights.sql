-- name: list_support_cases
-- Pages by the primary key: a page costs the same wherever it lies, and a case that opens meanwhile moves none.
SELECT
  case_id, kind, status, record, record_key, details, seen_count, correlation_id, first_seen_at, last_seen_at
FROM support_case
WHERE tenant_id = $1 AND case_id > coalesce($2::uuid, '00000000-0000-0000-0000-000000000000'::uuid)
ORDER BY case_id
LIMIT $3;

-- name: list_support_cases_by_status
-- A query of its own: `status = $2 OR $2 IS NULL` in one statement would keep the planner from any index on status.
SELECT
  case_id, kind, status, record, record_key, details, seen_count, correlation_id, first_seen_at, last_seen_at
FROM support_case
WHERE
  tenant_id = $1 AND status = $2 AND case_id > coalesce($3::uuid, '00000000-0000-0000-0000-000000000000'::uuid)
ORDER BY case_id
LIMIT $4;

-- name: list_support_cases
-- Pages by the primary key: a page costs the same wherever it lies, and a case that opens meanwhile moves none.
SELECT case_id, kind, status, record, record_key, details, seen_count, correlation_id, first_seen_at, last_seen_at
FROM support_case
WHERE tenant_id = :tenant_id AND case_id > :after AND (:status IS NULL OR status = :status)
ORDER BY case_id
LIMIT :limit;

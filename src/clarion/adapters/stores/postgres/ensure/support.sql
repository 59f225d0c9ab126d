-- name: write_support_cases
-- The last statement of its transaction, sorted, so that two that are about overlapping keys wait for each other. A
-- cause seen again is the same case, open again; one set may see it more than once, hence the count in what is given.
INSERT INTO support_case (
  tenant_id, case_id, kind, status, record, record_key, details, seen_count, correlation_id
)
SELECT g.tenant_id, g.case_id, g.kind, 'Open', g.record, g.record_key, g.details, g.seen_count, g.correlation_id
FROM json_to_recordset($1::json) AS g (
  tenant_id text, case_id uuid, kind text, record text, record_key text, details text, seen_count integer,
  correlation_id text
)
ORDER BY g.tenant_id, g.case_id
ON CONFLICT (tenant_id, case_id) DO UPDATE
SET
  status = 'Open',
  seen_count = support_case.seen_count + excluded.seen_count,
  last_seen_at = now(),
  details = excluded.details,
  correlation_id = excluded.correlation_id;

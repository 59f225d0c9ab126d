-- name: write_support_cases
-- The last statement of an ensure. A cause seen again is the same case, open again; one set may see it more than once,
-- and SQLite takes its rows one by one. WHERE true keeps ON CONFLICT from being read as a join's ON.
INSERT INTO support_case (
  tenant_id, case_id, kind, status, record, record_key, details, correlation_id, first_seen_at, last_seen_at
)
SELECT
  :tenant_id, g.value ->> 'case_id', g.value ->> 'kind', 'Open', g.value ->> 'record', g.value ->> 'record_key',
  g.value ->> 'details', g.value ->> 'correlation_id', clarion_now(), clarion_now()
FROM json_each(:items) AS g
WHERE true
ORDER BY g.key
ON CONFLICT (tenant_id, case_id) DO UPDATE
SET
  status = 'Open',
  seen_count = seen_count + 1,
  last_seen_at = excluded.last_seen_at,
  details = excluded.details,
  correlation_id = excluded.correlation_id;

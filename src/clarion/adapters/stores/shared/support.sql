-- name: write_support_cases
-- The last statement of its transaction, sorted, so that two that are about overlapping keys wait for each other. A
-- cause seen again is the same case, open again.
INSERT INTO support_case (
  tenant_id, case_id, kind, status, record, record_key, details, seen_count, correlation_id, first_seen_at, last_seen_at
)
SELECT
  g.tenant_id, g.case_id, g.kind, 'Open', g.record, g.record_key, g.details, g.seen_count, g.correlation_id, now(), now()
FROM {
  cases: tenant_id text, case_id guid, kind text, record text, record_key text, details text, seen_count whole,
  correlation_id text
} AS g
WHERE true
ORDER BY g.tenant_id, g.case_id
ON CONFLICT (tenant_id, case_id) DO UPDATE
SET
  status = excluded.status,
  seen_count = support_case.seen_count + excluded.seen_count,
  last_seen_at = excluded.last_seen_at,
  details = excluded.details,
  correlation_id = excluded.correlation_id;

-- name: resolve_support_case
-- Open to Resolved and no other move, so that two who resolve at once are one resolution.
UPDATE support_case
SET status = 'Resolved', resolved_at = now(), resolved_by = :actor, resolution = :resolution
WHERE tenant_id = :tenant_id AND case_id = :case_id AND status IN {open: text};

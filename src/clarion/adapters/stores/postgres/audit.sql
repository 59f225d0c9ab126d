-- name: lock_audit_log
-- One at a time for each tenant, until the transaction ends: an entry carries the hash of the one before it. A lock of
-- its own, because a tenant's first entry has no row before it that could be locked.
SELECT pg_advisory_xact_lock(hashtextextended('clarion audit ' || $1::text, 0));

-- name: read_last_audit_entry
-- After the lock, in a statement of its own, whose snapshot holds what the one before us committed. The instant is
-- handed out here, because the hash covers it.
SELECT clock_timestamp() AS at, last.seq, last.hash
FROM (SELECT 1) AS always
LEFT JOIN LATERAL (
  SELECT found.seq, found.hash
  FROM audit_log AS found
  WHERE found.tenant_id = $1
  ORDER BY found.seq DESC
  LIMIT 1
) AS last ON true;

-- name: insert_audit_entry
-- A key that is taken is an error: then the chain would fork.
INSERT INTO audit_log (tenant_id, seq, at, actor, act, subject, reason, details, previous_hash, hash)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10);

-- name: list_audit
-- Pages by the primary key.
SELECT seq, at, actor, act, subject, reason, details, hash
FROM audit_log
WHERE tenant_id = $1 AND seq > $2
ORDER BY seq
LIMIT $3;

-- name: read_last_audit_entry
-- What the next entry is chained to; this transaction is the only one that writes, so it stays the last.
SELECT seq, hash FROM audit_log WHERE tenant_id = :tenant_id AND seq > 0 ORDER BY seq DESC LIMIT 1;

-- name: insert_audit_entry
-- In the transaction of the act itself.
INSERT INTO audit_log (tenant_id, seq, at, actor, act, subject, reason, details, previous_hash, hash)
VALUES (:tenant_id, :seq, clarion_now(), :actor, :act, :subject, :reason, :details, :previous_hash, :hash);

-- name: list_audit
-- Pages by the primary key.
SELECT seq, at, actor, act, subject, reason, details, hash
FROM audit_log
WHERE tenant_id = :tenant_id AND seq > :after
ORDER BY seq
LIMIT :limit;

-- outside a transaction
-- Pages of those that have one cause, the newest first.
DROP INDEX CONCURRENTLY IF EXISTS suppression_cause;
CREATE INDEX CONCURRENTLY suppression_cause ON suppression (tenant_id, cause, created_at);

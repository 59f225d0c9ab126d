-- outside a transaction
-- The jobs of a time, and a tenant's latest, whoever made them: those of one moment, a set that was accepted as one, are
-- paged through without being sorted. In place of the index of times alone.
DROP INDEX CONCURRENTLY IF EXISTS notification_job_latest;
CREATE INDEX CONCURRENTLY notification_job_latest ON notification_job (tenant_id, source_at, guid);

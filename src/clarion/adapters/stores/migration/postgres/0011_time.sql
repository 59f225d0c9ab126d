-- outside a transaction
-- The jobs of a time, whose messages a report counts; their keys are in the order of time only where nobody planned them.
DROP INDEX CONCURRENTLY IF EXISTS notification_job_time;
CREATE INDEX CONCURRENTLY notification_job_time ON notification_job (tenant_id, source_at);

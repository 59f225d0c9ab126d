-- The jobs of a time, whose messages a report counts; their keys are in the order of time only where nobody planned them.
CREATE INDEX notification_job_time ON notification_job (tenant_id, source_at);

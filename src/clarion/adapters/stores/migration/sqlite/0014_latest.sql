-- The jobs of a time, and a tenant's latest, whoever made them: those of one moment, a set that was accepted as one, are
-- paged through without being sorted. In place of the index of times alone.
CREATE INDEX notification_job_latest ON notification_job (tenant_id, source_at, guid);

-- The jobs of one-time codes whose payload is still there, for whoever erases it.
CREATE INDEX notification_job_one_time ON notification_job (id) WHERE one_time_code AND payload IS NOT NULL;

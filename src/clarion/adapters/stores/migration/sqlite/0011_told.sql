-- By what a messaging job's scheduler row and its outgoing rows are led to the job that tells of it. One tells of each.
CREATE UNIQUE INDEX notification_job_content ON notification_job (tenant_id, messaging_job)
  WHERE messaging_job IS NOT NULL;

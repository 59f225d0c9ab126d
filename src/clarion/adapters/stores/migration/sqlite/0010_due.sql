-- What is claimed, the earliest first; what waits for a retry stands behind what is due.
CREATE INDEX automation_scheduler_ready ON automation_scheduler (due_at, id) WHERE standing = 'pending';
-- The same of each tenant in its turn, and every list.
CREATE INDEX automation_scheduler_standing ON automation_scheduler (standing, tenant_id, due_at, id);
-- Claims whose worker is gone.
CREATE INDEX automation_scheduler_lease ON automation_scheduler (lease_until, id) WHERE lease_until IS NOT NULL;
-- What of a source is not over, for its plans.
CREATE INDEX automation_scheduler_open ON automation_scheduler (tenant_id, source_type, source, standing);
-- Lists of reports alone, or of reminders alone.
CREATE INDEX automation_scheduler_type ON automation_scheduler (standing, tenant_id, automation_type, due_at, id);

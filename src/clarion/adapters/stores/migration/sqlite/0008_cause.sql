-- Pages of those that have one cause, the newest first.
CREATE INDEX suppression_cause ON suppression (tenant_id, cause, created_at);

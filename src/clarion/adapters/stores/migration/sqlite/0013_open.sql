-- What of a source is not over, for its plans. In place of one over all rows, beside which a server without statistics
-- found an index of the whole tenant as good.
CREATE INDEX automation_scheduler_live ON automation_scheduler (tenant_id, source_type, source)
  WHERE status = 'Pending' OR status = 'Processing';

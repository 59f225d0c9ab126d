-- What was answered from one destination, to find the latest; nearly no event is such an answer.
CREATE INDEX webhook_event_subject ON webhook_event (tenant_id, subject) WHERE subject IS NOT NULL;

-- What was told of one occurrence, among all that was told of its entity. Without the key of the line, which has the
-- subject in it once more: the lines of one moment are few enough to sort.
CREATE INDEX entity_history_subject ON entity_history (tenant_id, entity_guid, subject, at);

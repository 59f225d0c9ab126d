-- What every claim asks by, twice for each message.
CREATE INDEX suppression_subject ON suppression (subject);

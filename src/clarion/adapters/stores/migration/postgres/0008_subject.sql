-- outside a transaction
-- What every claim asks by, twice for each message. By hash, because a look among a hundred thousand then costs a sixth.
DROP INDEX CONCURRENTLY IF EXISTS suppression_subject;
CREATE INDEX CONCURRENTLY suppression_subject ON suppression USING hash (subject);

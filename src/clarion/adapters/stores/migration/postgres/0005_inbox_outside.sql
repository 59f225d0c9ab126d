-- outside a transaction
-- The lines that have no row in inbox_state yet, for whoever enters them; soon none.
DROP INDEX CONCURRENTLY IF EXISTS user_message_outside;
CREATE INDEX CONCURRENTLY user_message_outside ON user_message (id) WHERE NOT in_inbox;

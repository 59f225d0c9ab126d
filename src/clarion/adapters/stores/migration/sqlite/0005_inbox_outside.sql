-- The lines that have no row in inbox_state yet, for whoever enters them; soon none.
CREATE INDEX user_message_outside ON user_message (id) WHERE NOT in_inbox;

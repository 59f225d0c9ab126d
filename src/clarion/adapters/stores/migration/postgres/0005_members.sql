-- outside a transaction
-- The groups that a person is in.
DROP INDEX CONCURRENTLY IF EXISTS group_member_person;
CREATE INDEX CONCURRENTLY group_member_person ON group_member (tenant_id, recipient_id_hash);

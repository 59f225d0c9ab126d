-- The groups that a person is in.
CREATE INDEX group_member_person ON group_member (tenant_id, recipient_id_hash);

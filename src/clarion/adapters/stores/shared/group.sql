-- name: put_group
-- Locks the group, so that of two who replace its members one waits.
INSERT INTO audience_group (tenant_id, guid, name)
VALUES (:tenant_id, :guid, :name)
ON CONFLICT (tenant_id, guid) DO UPDATE SET name = excluded.name;

-- name: delete_members
-- Those who are members no longer.
DELETE FROM group_member
WHERE tenant_id = :tenant_id AND group_guid = :guid AND recipient_id_hash NOT IN {members: text};

-- name: insert_members
-- Those who are not members yet. Whether somebody is known is asked when a message is made, not here.
INSERT INTO group_member (tenant_id, group_guid, recipient_id_hash)
SELECT :tenant_id, :guid, p.recipient_id_hash
FROM {members: recipient_id_hash text} AS p
WHERE true
ORDER BY p.recipient_id_hash
ON CONFLICT DO NOTHING;

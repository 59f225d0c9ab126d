-- name: put_group
-- Locks the group also where its name stays, so that of two who change it one waits.
INSERT INTO audience_group (tenant_id, guid, name)
VALUES (:tenant_id, :guid, :name)
ON CONFLICT (tenant_id, guid) DO UPDATE SET name = excluded.name
WHERE audience_group.name <> excluded.name;

-- name: lock_group
-- Whoever changes a group that must be there: of two one waits, so that neither holds rows that the other wants.
SELECT guid, name FROM audience_group WHERE tenant_id = :tenant_id AND guid = :guid FOR NO KEY UPDATE;

-- name: rename_group
-- Changes nothing where it is so already.
UPDATE audience_group SET name = :name WHERE tenant_id = :tenant_id AND guid = :guid AND name <> :name;

-- name: read_group
-- With the number of its own members, counted along the primary key.
SELECT
  g.guid, g.name,
  (SELECT count(*) FROM group_member AS m WHERE m.tenant_id = :tenant_id AND m.group_guid = g.guid) AS members
FROM audience_group AS g
WHERE g.tenant_id = :tenant_id AND g.guid = :guid;

-- name: list_groups
-- Pages by the primary key.
SELECT guid, name FROM audience_group
WHERE tenant_id = :tenant_id AND guid >= :start
ORDER BY guid
LIMIT :limit;

-- name: read_children
-- In the order of the index.
SELECT child_guid AS guid FROM group_child WHERE tenant_id = :tenant_id AND group_guid = :guid ORDER BY child_guid;

-- name: find_groups
-- Which of these there are.
SELECT g.guid FROM {guids: guid guid} AS g
JOIN audience_group AS a ON a.tenant_id = :tenant_id AND a.guid = g.guid;

-- name: delete_children
-- Those that are inside it no longer.
DELETE FROM group_child WHERE tenant_id = :tenant_id AND group_guid = :guid AND child_guid NOT IN {children: guid};

-- name: insert_children
-- Those that are not inside it yet.
INSERT INTO group_child (tenant_id, group_guid, child_guid)
SELECT :tenant_id, :guid, c.guid
FROM {children: guid guid} AS c
WHERE true
ORDER BY c.guid
ON CONFLICT DO NOTHING;

-- name: read_inside
-- Level by level down from each child, as far as is allowed and one more, so that a circle comes to its end too. Each
-- group is one row a level, by however many ways it is reached.
WITH RECURSIVE inside (child, guid, level) AS (
  SELECT c.child_guid, c.child_guid, 1
  FROM group_child AS c
  WHERE c.tenant_id = :tenant_id AND c.group_guid = :guid
  UNION
  SELECT found.child, c.child_guid, found.level + 1
  FROM inside AS found
  JOIN group_child AS c ON c.tenant_id = :tenant_id AND c.group_guid = found.guid
  WHERE found.level <= :depth
)
SELECT
  found.child, max(found.level) AS levels, max(CASE WHEN found.guid = :guid THEN 1 ELSE 0 END) AS circles
FROM inside AS found
GROUP BY found.child
ORDER BY found.child;

-- name: count_above
-- On how many levels a group lies inside others. SQLite, without statistics, goes through the tenant's nestings for it.
WITH RECURSIVE above (guid, level) AS (
  SELECT nesting.group_guid, 1
  FROM group_child AS nesting
  WHERE nesting.tenant_id = :tenant_id AND nesting.child_guid = :guid
  UNION
  SELECT nesting.group_guid, found.level + 1
  FROM above AS found
  JOIN group_child AS nesting ON nesting.tenant_id = :tenant_id AND nesting.child_guid = found.guid
  WHERE found.level <= :depth
)
SELECT coalesce(max(found.level), 0) AS levels FROM above AS found;

-- name: replace_members
-- Takes out those who are members no longer.
DELETE FROM group_member
WHERE tenant_id = :tenant_id AND group_guid = :guid AND recipient_id_hash NOT IN {members: text};

-- name: remove_members
-- Those who are members still.
DELETE FROM group_member
WHERE tenant_id = :tenant_id AND group_guid = :guid AND recipient_id_hash IN {members: text}
RETURNING recipient_id_hash;

-- name: add_members
-- Those who are not members yet. Whether somebody is known is asked when a message is made, not here.
INSERT INTO group_member (tenant_id, group_guid, recipient_id_hash)
SELECT :tenant_id, :guid, p.recipient_id_hash
FROM {members: recipient_id_hash text} AS p
WHERE true
ORDER BY p.recipient_id_hash
ON CONFLICT DO NOTHING
RETURNING recipient_id_hash;

-- name: list_members
-- Pages by the primary key. The place is written as a range: where it is known to be one, the order of the index of
-- people would do as well, and finding a small place there goes through the whole tenant.
SELECT m.recipient_id_hash FROM group_member AS m
WHERE m.tenant_id = :tenant_id AND (m.group_guid, m.recipient_id_hash) > (:guid, :after) AND m.group_guid <= :guid
ORDER BY m.group_guid, m.recipient_id_hash
LIMIT :limit;

-- name: delete_group
-- Before what belongs to it, so that nobody else is changing it.
DELETE FROM audience_group WHERE tenant_id = :tenant_id AND guid = :guid;

-- name: delete_members
-- All of them at once: a group that is half there would be sent to.
DELETE FROM group_member WHERE tenant_id = :tenant_id AND group_guid = :guid;

-- name: delete_inside
-- What it held.
DELETE FROM group_child WHERE tenant_id = :tenant_id AND group_guid = :guid;

-- name: delete_places
-- Out of the groups that hold it.
DELETE FROM group_child WHERE tenant_id = :tenant_id AND child_guid = :guid;

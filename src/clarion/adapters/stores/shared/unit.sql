-- name: put_business_unit
-- Whoever puts it again changes what it is called and how its people read.
INSERT INTO business_unit (tenant_id, guid, name, locale, tz_id)
VALUES (:tenant_id, :guid, :name, :locale, :tz_id)
ON CONFLICT (tenant_id, guid) DO UPDATE
SET name = excluded.name, locale = excluded.locale, tz_id = excluded.tz_id
WHERE
  business_unit.name <> excluded.name OR coalesce(business_unit.locale, '') <> coalesce(excluded.locale, '')
  OR coalesce(business_unit.tz_id, '') <> coalesce(excluded.tz_id, '');

-- name: lock_unit_zone
-- Of two who move it to another zone one waits, and sees the zone of the other.
SELECT tz_id FROM business_unit WHERE tenant_id = :tenant_id AND guid = :guid FOR NO KEY UPDATE;

-- name: lock_business_unit
-- Of two who change its members one waits.
SELECT guid FROM business_unit WHERE tenant_id = :tenant_id AND guid = :guid FOR NO KEY UPDATE;

-- name: read_business_unit
-- By the primary key.
SELECT guid, name, locale, tz_id FROM business_unit WHERE tenant_id = :tenant_id AND guid = :guid;

-- name: list_first_business_units
-- In the order of their names; those of the same name by their guids. A tenant has few enough to sort.
SELECT unit.guid, unit.name, unit.locale, unit.tz_id
FROM business_unit AS unit
WHERE unit.tenant_id = :tenant_id
ORDER BY unit.name COLLATE "C", unit.guid
LIMIT :limit;

-- name: list_business_units
-- The pages behind the first one.
SELECT unit.guid, unit.name, unit.locale, unit.tz_id
FROM business_unit AS unit
WHERE
  unit.tenant_id = :tenant_id
  AND (unit.name COLLATE "C" > :name OR (unit.name = :name AND unit.guid > :guid))
ORDER BY unit.name COLLATE "C", unit.guid
LIMIT :limit;

-- name: remove_unit_members
-- Those who belong to it still.
DELETE FROM unit_member
WHERE tenant_id = :tenant_id AND unit_guid = :guid AND recipient_id_hash IN {members: text}
RETURNING recipient_id_hash;

-- name: add_unit_members
-- Those who do not belong to it yet, known or not.
INSERT INTO unit_member (tenant_id, unit_guid, recipient_id_hash)
SELECT :tenant_id, :guid, p.recipient_id_hash
FROM {members: recipient_id_hash text} AS p
WHERE true
ORDER BY p.recipient_id_hash
ON CONFLICT DO NOTHING
RETURNING recipient_id_hash;

-- name: list_unit_members
-- Pages by the primary key. The place is written as a range: where it is known to be one, the order of the index of
-- people would do as well, and finding a small place there goes through the whole tenant.
SELECT m.recipient_id_hash FROM unit_member AS m
WHERE m.tenant_id = :tenant_id AND (m.unit_guid, m.recipient_id_hash) > (:guid, :after) AND m.unit_guid <= :guid
ORDER BY m.unit_guid, m.recipient_id_hash
LIMIT :limit;

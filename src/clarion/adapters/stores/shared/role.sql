-- name: find_unit
-- Whether there is such a business unit.
SELECT guid FROM business_unit WHERE tenant_id = :tenant_id AND guid = :guid;

-- name: remove_holders
-- Those who hold it there still.
DELETE FROM role_holder
WHERE tenant_id = :tenant_id AND role = :role AND unit = :unit AND recipient_id_hash IN {members: text}
RETURNING recipient_id_hash;

-- name: add_holders
-- Those who do not hold it there yet, known or not.
INSERT INTO role_holder (tenant_id, role, unit, recipient_id_hash)
SELECT :tenant_id, :role, :unit, p.recipient_id_hash
FROM {members: recipient_id_hash text} AS p
WHERE true
ORDER BY p.recipient_id_hash
ON CONFLICT DO NOTHING
RETURNING recipient_id_hash;

-- name: list_holders
-- Pages by the primary key, and then who they are. The place is written as a range: where it is known to be one, the
-- order of the index of people would do as well, and finding a small place there goes through the whole tenant.
SELECT found.recipient_id_hash, p.domain, p.person_id
FROM (
  SELECT m.recipient_id_hash
  FROM role_holder AS m
  WHERE
    m.tenant_id = :tenant_id AND (m.role, m.unit, m.recipient_id_hash) > (:role, :unit, :after)
    AND (m.role, m.unit) <= (:role, :unit)
  ORDER BY m.role, m.unit, m.recipient_id_hash
  LIMIT :limit
) AS found
LEFT JOIN person AS p ON p.tenant_id = :tenant_id AND p.recipient_id_hash = found.recipient_id_hash
ORDER BY found.recipient_id_hash;

-- name: list_roles
-- Counted along the primary key: roles are held by the staff of a tenant, and they are few beside its people.
SELECT h.role, h.unit, count(*) AS holders
FROM role_holder AS h
WHERE
  h.tenant_id = :tenant_id
  AND (h.role COLLATE "C" > :role OR (h.role = :role AND h.unit COLLATE "C" > :unit))
GROUP BY h.role, h.unit
ORDER BY h.role COLLATE "C", h.unit COLLATE "C"
LIMIT :limit;

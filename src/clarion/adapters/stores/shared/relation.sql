-- name: remove_relations
-- Those that are there still. By the index of people, who have a handful each; the whole key is compared then.
DELETE FROM entity_relation
WHERE
  tenant_id = :tenant_id AND recipient_id_hash IN {hashes: text}
  AND (entity_type, entity_guid, relation, recipient_id_hash) IN (
    SELECT g.entity_type, g.entity_guid, g.relation, g.recipient_id_hash
    FROM {relations: entity_type text, entity_guid guid, relation text, recipient_id_hash text} AS g
  )
RETURNING entity_type, entity_guid, relation, recipient_id_hash;

-- name: add_relations
-- Those that are not there yet, of people known or not. Sorted as the primary key is.
INSERT INTO entity_relation (tenant_id, entity_type, entity_guid, relation, recipient_id_hash)
SELECT :tenant_id, g.entity_type, g.entity_guid, g.relation, g.recipient_id_hash
FROM {relations: entity_type text, entity_guid guid, relation text, recipient_id_hash text} AS g
WHERE true
ORDER BY g.entity_type, g.entity_guid, g.relation, g.recipient_id_hash
ON CONFLICT DO NOTHING
RETURNING entity_type, entity_guid, relation, recipient_id_hash;

-- name: list_relations
-- Pages by the primary key, in its order, and then who they are.
SELECT found.entity_type, found.entity_guid, found.relation, found.recipient_id_hash, p.domain, p.person_id
FROM (
  SELECT r.entity_type, r.entity_guid, r.relation, r.recipient_id_hash
  FROM entity_relation AS r
  WHERE
    r.tenant_id = :tenant_id AND r.entity_type = :entity_type AND r.entity_guid = :entity_guid
    AND (r.relation, r.recipient_id_hash) > (:relation, :recipient_id_hash)
  ORDER BY r.relation, r.recipient_id_hash
  LIMIT :limit
) AS found
LEFT JOIN person AS p ON p.tenant_id = :tenant_id AND p.recipient_id_hash = found.recipient_id_hash
ORDER BY found.relation, found.recipient_id_hash;

-- name: list_relations_of
-- By the index of people. A person has a handful; whoever is related to thousands of things has them sorted for each
-- page.
SELECT found.entity_type, found.entity_guid, found.relation, found.recipient_id_hash, p.domain, p.person_id
FROM (
  SELECT entity_type, entity_guid, relation, recipient_id_hash FROM entity_relation
  WHERE
    tenant_id = :tenant_id AND recipient_id_hash = :recipient_id_hash
    AND (
      entity_type COLLATE "C" > :entity_type
      OR (
        entity_type = :entity_type
        AND (entity_guid > :entity_guid OR (entity_guid = :entity_guid AND relation COLLATE "C" > :relation))
      )
    )
  ORDER BY entity_type COLLATE "C", entity_guid, relation COLLATE "C"
  LIMIT :limit
) AS found
LEFT JOIN person AS p ON p.tenant_id = :tenant_id AND p.recipient_id_hash = found.recipient_id_hash
ORDER BY found.entity_type COLLATE "C", found.entity_guid, found.relation COLLATE "C";

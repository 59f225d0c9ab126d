-- name: find_audience
-- Each group, role, unit and relation is walked along its primary key from `after` for no more than one page, and what
-- they gave is merged. The groups inside groups are found anew for each page: they are few, and a group that holds
-- itself ends at the depth.
WITH RECURSIVE inside (guid, depth) AS (
  SELECT g.guid, 1
  FROM {groups: guid guid} AS g
  UNION
  SELECT c.child_guid, i.depth + 1
  FROM inside AS i
  JOIN group_child AS c ON c.tenant_id = :tenant_id AND c.group_guid = i.guid AND i.depth < :depth_max
)
SELECT DISTINCT found.recipient_id_hash
FROM (
  SELECT h.value AS recipient_id_hash
  FROM (SELECT DISTINCT i.guid FROM inside AS i) AS w
  CROSS JOIN LATERAL (
    SELECT m.recipient_id_hash AS value
    FROM group_member AS m
    WHERE m.tenant_id = :tenant_id AND m.group_guid = w.guid AND m.recipient_id_hash > :after
    ORDER BY m.recipient_id_hash
    LIMIT :limit
  ) AS h
  UNION ALL
  SELECT h.value
  FROM {units: guid guid} AS g
  CROSS JOIN LATERAL (
    SELECT m.recipient_id_hash AS value
    FROM unit_member AS m
    WHERE m.tenant_id = :tenant_id AND m.unit_guid = g.guid AND m.recipient_id_hash > :after
    ORDER BY m.recipient_id_hash
    LIMIT :limit
  ) AS h
  UNION ALL
  SELECT h.value
  FROM {roles: role text, held_in text} AS g
  CROSS JOIN LATERAL (
    SELECT m.recipient_id_hash AS value
    FROM role_holder AS m
    WHERE m.tenant_id = :tenant_id AND m.role = g.role AND m.unit = g.held_in AND m.recipient_id_hash > :after
    ORDER BY m.recipient_id_hash
    LIMIT :limit
  ) AS h
  UNION ALL
  SELECT h.value
  FROM {relations: entity_type text, entity_guid guid, relation text} AS g
  CROSS JOIN LATERAL (
    SELECT m.recipient_id_hash AS value
    FROM entity_relation AS m
    WHERE
      m.tenant_id = :tenant_id AND m.entity_type = g.entity_type AND m.entity_guid = g.entity_guid
      AND m.relation = g.relation AND m.recipient_id_hash > :after
    ORDER BY m.recipient_id_hash
    LIMIT :limit
  ) AS h
) AS found
ORDER BY found.recipient_id_hash
LIMIT :limit;

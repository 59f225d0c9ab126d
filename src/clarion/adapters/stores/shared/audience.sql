-- name: find_audiences
-- Each group, role, unit and relation is walked along its primary key from `after` for no more than one page, and what
-- they gave is merged. The groups inside groups are found anew for each page: they are few, and a group that holds
-- itself ends at the depth. For several audiences at once, each with its number. The conditions are those of a range of
-- the primary key, because equal parts would let PostgreSQL walk the index of people and pass over all who are in other
-- groups.
WITH RECURSIVE inside (n, guid, depth) AS (
  SELECT g.n, g.guid, 1
  FROM {groups: n whole, guid guid} AS g
  UNION
  SELECT i.n, c.child_guid, i.depth + 1
  FROM inside AS i
  JOIN group_child AS c ON c.tenant_id = :tenant_id AND c.group_guid = i.guid AND i.depth < :depth_max
)
SELECT page.n, page.recipient_id_hash
FROM (
  SELECT
    found.n, found.recipient_id_hash,
    row_number() OVER (PARTITION BY found.n ORDER BY found.recipient_id_hash) AS place
  FROM (
    SELECT w.n, h.value AS recipient_id_hash
    FROM (SELECT DISTINCT i.n, i.guid FROM inside AS i) AS w
    CROSS JOIN LATERAL (
      SELECT m.recipient_id_hash AS value
      FROM group_member AS m
      WHERE
        m.tenant_id = :tenant_id AND (m.group_guid, m.recipient_id_hash) > (w.guid, :after) AND m.group_guid <= w.guid
      ORDER BY m.group_guid, m.recipient_id_hash
      LIMIT :limit
    ) AS h
    UNION
    SELECT g.n, h.value
    FROM {units: n whole, guid guid} AS g
    CROSS JOIN LATERAL (
      SELECT m.recipient_id_hash AS value
      FROM unit_member AS m
      WHERE
        m.tenant_id = :tenant_id AND (m.unit_guid, m.recipient_id_hash) > (g.guid, :after) AND m.unit_guid <= g.guid
      ORDER BY m.unit_guid, m.recipient_id_hash
      LIMIT :limit
    ) AS h
    UNION
    SELECT g.n, h.value
    FROM {roles: n whole, role text, held_in text} AS g
    CROSS JOIN LATERAL (
      SELECT m.recipient_id_hash AS value
      FROM role_holder AS m
      WHERE
        m.tenant_id = :tenant_id AND (m.role, m.unit, m.recipient_id_hash) > (g.role, g.held_in, :after)
        AND (m.role, m.unit) <= (g.role, g.held_in)
      ORDER BY m.role, m.unit, m.recipient_id_hash
      LIMIT :limit
    ) AS h
    UNION
    SELECT g.n, h.value
    FROM {relations: n whole, entity_type text, entity_guid guid, relation text} AS g
    CROSS JOIN LATERAL (
      SELECT m.recipient_id_hash AS value
      FROM entity_relation AS m
      WHERE
        m.tenant_id = :tenant_id
        AND (m.entity_type, m.entity_guid, m.relation, m.recipient_id_hash)
        > (g.entity_type, g.entity_guid, g.relation, :after)
        AND (m.entity_type, m.entity_guid, m.relation) <= (g.entity_type, g.entity_guid, g.relation)
      ORDER BY m.entity_type, m.entity_guid, m.relation, m.recipient_id_hash
      LIMIT :limit
    ) AS h
  ) AS found
) AS page
WHERE page.place <= :limit
ORDER BY page.n, page.recipient_id_hash;

-- name: find_recipients
-- People and their contacts in one statement, the contacts as arrays, whatever number is asked for.
SELECT
  p.domain, p.person_id, p.recipient_id_hash, p.profile,
  ARRAY(
    SELECT c.channel
    FROM contact AS c
    WHERE c.tenant_id = $1 AND c.recipient_id_hash = p.recipient_id_hash
    ORDER BY c.channel, c.address_id
  ) AS channels,
  ARRAY(
    SELECT c.address_id
    FROM contact AS c
    WHERE c.tenant_id = $1 AND c.recipient_id_hash = p.recipient_id_hash
    ORDER BY c.channel, c.address_id
  ) AS address_ids
FROM unnest($2::text[]) AS g (recipient_id_hash)
CROSS JOIN LATERAL (
  SELECT found.domain, found.person_id, found.recipient_id_hash, found.profile
  FROM person AS found
  WHERE found.tenant_id = $1 AND found.recipient_id_hash = g.recipient_id_hash
  LIMIT 1
) AS p;

-- name: find_members
-- A group without members is there, with none; an unknown group is not.
SELECT
  a.guid,
  ARRAY(
    SELECT m.recipient_id_hash
    FROM group_member AS m
    WHERE m.tenant_id = $1 AND m.group_guid = a.guid
    ORDER BY m.recipient_id_hash
  ) AS members
FROM unnest($2::uuid[]) AS g (guid)
CROSS JOIN LATERAL (
  SELECT found.guid
  FROM audience_group AS found
  WHERE found.tenant_id = $1 AND found.guid = g.guid
  LIMIT 1
) AS a;

-- name: find_disabled_types
-- Across tenants, as workers ask.
SELECT s.tenant_id, s.event_type
FROM unnest($1::text[], $2::text[]) AS g (tenant_id, event_type)
CROSS JOIN LATERAL (
  SELECT found.tenant_id, found.event_type
  FROM type_setting AS found
  WHERE found.tenant_id = g.tenant_id AND found.event_type = g.event_type AND NOT found.enabled
  LIMIT 1
) AS s;

-- name: find_templates
-- The version asked for, or the latest: the first of the index read backwards.
SELECT g.place, t.template_key, t.version, t.content_hash, t.bundle
FROM unnest($1::text[], $2::text[], $3::integer[]) WITH ORDINALITY AS g (tenant_id, template_key, version, place)
CROSS JOIN LATERAL (
  SELECT found.template_key, found.version, found.content_hash, found.bundle
  FROM template AS found
  WHERE
    found.tenant_id = g.tenant_id AND found.template_key = g.template_key
    AND found.version BETWEEN coalesce(g.version, 1) AND coalesce(g.version, 2147483647)
  ORDER BY found.version DESC
  LIMIT 1
) AS t;

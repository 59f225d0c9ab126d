-- name: find_recipients
-- People and their contacts in one go; a person without any is one row with nulls behind.
SELECT p.recipient_id_hash, p.domain, p.person_id, p.profile, c.channel, c.address_id
FROM json_each(:hashes) AS g
CROSS JOIN person AS p ON p.tenant_id = :tenant_id AND p.recipient_id_hash = g.value
LEFT JOIN contact AS c ON c.tenant_id = p.tenant_id AND c.recipient_id_hash = p.recipient_id_hash
ORDER BY p.recipient_id_hash, c.channel, c.address_id;

-- name: find_members
-- A group without members is one row with a null behind, and so is told from one that is not there.
SELECT a.guid, m.recipient_id_hash
FROM json_each(:groups) AS g
CROSS JOIN audience_group AS a ON a.tenant_id = :tenant_id AND a.guid = g.value
LEFT JOIN group_member AS m ON m.tenant_id = a.tenant_id AND m.group_guid = a.guid
ORDER BY a.guid, m.recipient_id_hash;

-- name: find_disabled_types
-- What nobody has switched has no row and is on.
SELECT s.tenant_id, s.event_type
FROM json_each(:types) AS g
CROSS JOIN type_setting AS s ON s.tenant_id = g.value ->> 0 AND s.event_type = g.value ->> 1
WHERE s.enabled = 0;

-- name: find_templates
-- The version that is asked for, or the last one of the key, which the primary key ends in.
SELECT g.key, t.template_key, t.version, t.content_hash, t.bundle
FROM json_each(:wanted) AS g
CROSS JOIN template AS t
  ON
    t.tenant_id = g.value ->> 0 AND t.template_key = g.value ->> 1
    AND t.version = coalesce(
      g.value ->> 2,
      (SELECT max(l.version) FROM template AS l WHERE l.tenant_id = g.value ->> 0 AND l.template_key = g.value ->> 1)
    );

-- name: find_strange_profiles
-- Versions of somebody else's profile, or of none that is there.
SELECT g.person_version_id AS id
FROM {people: recipient_id_hash text, person_version_id whole} AS g
LEFT JOIN person_version AS v
  ON v.id = g.person_version_id AND v.tenant_id = :tenant_id AND v.recipient_id_hash = g.recipient_id_hash
WHERE g.person_version_id IS NOT NULL AND v.id IS NULL;

-- name: find_strange_addresses
-- Address versions of another person, of nobody or of another channel.
SELECT g.address_id AS id
FROM {contacts: recipient_id_hash text, channel text, address_id whole} AS g
LEFT JOIN address_version AS a
  ON
    a.id = g.address_id AND a.tenant_id = :tenant_id AND a.recipient_id_hash = g.recipient_id_hash
    AND a.channel = g.channel
WHERE a.id IS NULL;

-- name: lock_people
-- In the order of the set, which is sorted, so that two who edit the same people wait for each other.
SELECT p.recipient_id_hash
FROM {hashes: recipient_id_hash text} AS g
JOIN person AS p ON p.tenant_id = :tenant_id AND p.recipient_id_hash = g.recipient_id_hash
FOR UPDATE OF p;

-- name: insert_people
-- Those whom nobody knew when they were asked for; who is left out was made by somebody else since.
INSERT INTO person (tenant_id, recipient_id_hash, domain, person_id, profile, person_version_id, locale, tz_id)
SELECT :tenant_id, p.recipient_id_hash, p.domain, p.person_id, no_bytes(), p.person_version_id, p.locale, p.tz_id
FROM {
  people: recipient_id_hash text, domain text, person_id text, person_version_id whole, locale text, tz_id text
} AS p
WHERE true
ORDER BY p.recipient_id_hash
ON CONFLICT DO NOTHING
RETURNING recipient_id_hash;

-- name: put_people
-- The hash decides who somebody is. Sorted, so that two who write the same people wait for each other. Everybody is
-- locked, and only who differs is written and comes back.
INSERT INTO person (tenant_id, recipient_id_hash, domain, person_id, profile, person_version_id, locale, tz_id)
SELECT :tenant_id, p.recipient_id_hash, p.domain, p.person_id, no_bytes(), p.person_version_id, p.locale, p.tz_id
FROM {
  people: recipient_id_hash text, domain text, person_id text, person_version_id whole, locale text, tz_id text
} AS p
WHERE true
ORDER BY p.recipient_id_hash
ON CONFLICT (tenant_id, recipient_id_hash) DO UPDATE
SET
  domain = excluded.domain, person_id = excluded.person_id, profile = excluded.profile,
  person_version_id = excluded.person_version_id, locale = excluded.locale, tz_id = excluded.tz_id
WHERE
  person.domain <> excluded.domain
  OR person.person_id <> excluded.person_id
  OR person.person_version_id IS DISTINCT FROM excluded.person_version_id
  OR person.locale IS DISTINCT FROM excluded.locale
  OR person.tz_id IS DISTINCT FROM excluded.tz_id
RETURNING recipient_id_hash;

-- name: delete_contacts
-- Whoever is put has the contacts that come with it and no others. After the people are locked by their own statement.
DELETE FROM contact
WHERE
  tenant_id = :tenant_id AND recipient_id_hash IN {hashes: text}
  AND (recipient_id_hash, address_id) NOT IN (
    SELECT g.recipient_id_hash, g.address_id FROM {contacts: recipient_id_hash text, address_id whole} AS g
  )
RETURNING recipient_id_hash;

-- name: put_contacts
-- Those that are new, or verified or retired otherwise than before.
INSERT INTO contact (tenant_id, recipient_id_hash, channel, address_id, verified, retired_at)
SELECT :tenant_id, p.recipient_id_hash, p.channel, p.address_id, p.verified, p.retired_at
FROM {
  contacts: recipient_id_hash text, channel text, address_id whole, verified truth, retired_at instant
} AS p
WHERE true
ORDER BY p.recipient_id_hash, p.channel, p.address_id
ON CONFLICT (tenant_id, recipient_id_hash, channel, address_id) DO UPDATE
SET verified = excluded.verified, retired_at = excluded.retired_at
WHERE
  contact.verified IS DISTINCT FROM excluded.verified OR contact.retired_at IS DISTINCT FROM excluded.retired_at
RETURNING recipient_id_hash;

-- name: delete_attribute_values
-- Whoever is put has the attributes that come with it and no others.
DELETE FROM person_attribute
WHERE
  tenant_id = :tenant_id AND recipient_id_hash IN {hashes: text}
  AND (recipient_id_hash, name) NOT IN (
    SELECT g.recipient_id_hash, g.name FROM {given: recipient_id_hash text, name text} AS g
  )
RETURNING recipient_id_hash;

-- name: put_attribute_values
-- Those that are new or others than before.
INSERT INTO person_attribute (tenant_id, recipient_id_hash, name, value)
SELECT :tenant_id, p.recipient_id_hash, p.name, p.value
FROM {given: recipient_id_hash text, name text, value text} AS p
WHERE true
ORDER BY p.recipient_id_hash, p.name
ON CONFLICT (tenant_id, recipient_id_hash, name) DO UPDATE
SET value = excluded.value
WHERE person_attribute.value <> excluded.value
RETURNING recipient_id_hash;

-- name: find_attribute_values
-- In the order of the primary key, without which SQLite would rather go through the index of all values of a tenant.
SELECT v.recipient_id_hash, v.name, v.value
FROM person_attribute AS v
WHERE v.tenant_id = :tenant_id AND v.recipient_id_hash IN {hashes: text}
ORDER BY v.recipient_id_hash, v.name;

-- name: list_people
-- In the order of their hashes, which says nothing about them and never changes; the primary key is read in it.
SELECT p.recipient_id_hash
FROM person AS p
WHERE p.tenant_id = :tenant_id AND p.recipient_id_hash > :after
ORDER BY p.recipient_id_hash
LIMIT :limit;

-- name: remove_people
-- What was made for them stays: it refers to versions of addresses and of profiles, which nobody removes here.
DELETE FROM person
WHERE
  (tenant_id, domain, person_id) IN (
    SELECT p.tenant_id, p.domain, p.person_id
    FROM {hashes: recipient_id_hash text} AS g
    JOIN person AS p ON p.tenant_id = :tenant_id AND p.recipient_id_hash = g.recipient_id_hash
  )
RETURNING recipient_id_hash;

-- name: remove_contacts
-- Their own statement, as those below: each table has a key of its own that begins with the tenant and the person.
DELETE FROM contact WHERE tenant_id = :tenant_id AND recipient_id_hash IN {hashes: text};

-- name: remove_attribute_values
-- See `remove_contacts`.
DELETE FROM person_attribute WHERE tenant_id = :tenant_id AND recipient_id_hash IN {hashes: text};

-- name: remove_group_memberships
-- See `remove_contacts`.
DELETE FROM group_member WHERE tenant_id = :tenant_id AND recipient_id_hash IN {hashes: text};

-- name: remove_unit_memberships
-- See `remove_contacts`.
DELETE FROM unit_member WHERE tenant_id = :tenant_id AND recipient_id_hash IN {hashes: text};

-- name: remove_roles_of_people
-- See `remove_contacts`.
DELETE FROM role_holder WHERE tenant_id = :tenant_id AND recipient_id_hash IN {hashes: text};

-- name: remove_relations_of_people
-- See `remove_contacts`.
DELETE FROM entity_relation WHERE tenant_id = :tenant_id AND recipient_id_hash IN {hashes: text};

-- name: declare_attribute
-- What is declared already stays as it is.
INSERT INTO attribute (tenant_id, name, kind)
VALUES (:tenant_id, :name, :kind)
ON CONFLICT DO NOTHING
RETURNING name, kind;

-- name: list_attributes
-- All of a tenant, of which there are some dozens.
SELECT declared.name, declared.kind
FROM attribute AS declared
WHERE declared.tenant_id = :tenant_id
ORDER BY declared.name COLLATE "C";

-- name: retire_contacts
-- Whoever is reached at the addresses that these messages went to, from now on; who was retired before stays so since
-- then. An address that is nobody's contact has none.
UPDATE contact
SET retired_at = now()
WHERE
  retired_at IS NULL
  AND (tenant_id, recipient_id_hash, channel, address_id) IN (
    SELECT c.tenant_id, c.recipient_id_hash, c.channel, c.address_id
    FROM {rows: bucket whole, id whole} AS g
    JOIN outgoing_message AS o ON o.bucket = g.bucket AND o.id = g.id
    JOIN address_version AS a ON a.id = o.address_id AND a.tenant_id = o.tenant_id
    JOIN contact AS c
      ON
        c.tenant_id = a.tenant_id AND c.recipient_id_hash = a.recipient_id_hash AND c.channel = a.channel
        AND c.address_id = a.id
  );

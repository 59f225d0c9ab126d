-- name: put_people
-- The hash decides who somebody is. Sorted, so that two who write the same people wait for each other.
-- A version of somebody else's profile is left out, which the caller sees by what comes back.
INSERT INTO person (tenant_id, recipient_id_hash, domain, person_id, profile, person_version_id, locale, tz_id)
SELECT
  :tenant_id, p.recipient_id_hash, p.domain, p.person_id, no_bytes(),
  (
    SELECT v.id
    FROM person_version AS v
    WHERE v.id = p.person_version_id AND v.tenant_id = :tenant_id AND v.recipient_id_hash = p.recipient_id_hash
  ),
  p.locale, p.tz_id
FROM {
  people: recipient_id_hash text, domain text, person_id text, person_version_id whole, locale text, tz_id text
} AS p
WHERE true
ORDER BY p.recipient_id_hash
ON CONFLICT (tenant_id, recipient_id_hash) DO UPDATE
SET
  domain = excluded.domain, person_id = excluded.person_id, profile = excluded.profile,
  person_version_id = excluded.person_version_id, locale = excluded.locale, tz_id = excluded.tz_id
RETURNING recipient_id_hash, person_version_id;

-- name: delete_contacts
-- Whoever is put has the contacts that come with it and no others. After the people are locked by their own statement.
DELETE FROM contact WHERE tenant_id = :tenant_id AND recipient_id_hash IN {hashes: text};

-- name: insert_contacts
-- An address version of another person, of nobody or of another channel makes no row.
INSERT INTO contact (tenant_id, recipient_id_hash, channel, address_id, verified, retired_at)
SELECT :tenant_id, a.recipient_id_hash, a.channel, a.id, p.verified, p.retired_at
FROM {
  contacts: recipient_id_hash text, channel text, address_id whole, verified truth, retired_at instant
} AS p
JOIN address_version AS a
  ON
    a.id = p.address_id AND a.tenant_id = :tenant_id AND a.recipient_id_hash = p.recipient_id_hash
    AND a.channel = p.channel
WHERE true
ORDER BY a.recipient_id_hash, a.channel, a.id
RETURNING recipient_id_hash, address_id;

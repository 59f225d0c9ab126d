-- name: count_known
-- Each of the set is looked up by the primary key.
SELECT count(*) AS n
FROM {hashes: recipient_id_hash text} AS g
JOIN person AS p ON p.tenant_id = :tenant_id AND p.recipient_id_hash = g.recipient_id_hash;

-- name: name_people
-- Each of the set by the primary key; whoever is not known has no name.
SELECT g.recipient_id_hash, p.domain, p.person_id
FROM {hashes: recipient_id_hash text} AS g
LEFT JOIN person AS p ON p.tenant_id = :tenant_id AND p.recipient_id_hash = g.recipient_id_hash
ORDER BY g.recipient_id_hash;

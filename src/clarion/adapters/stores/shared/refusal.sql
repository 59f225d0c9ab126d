-- name: find_destinations
-- Of rows whose locks are held: the index of the address that each went to.
SELECT o.id, a.destination_index
FROM {rows: bucket whole, id whole} AS g
JOIN outgoing_message AS o ON o.bucket = g.bucket AND o.id = g.id
JOIN address_version AS a ON a.id = o.address_id;

-- name: read_words
-- All that was ever answered from these destinations; somebody wrote each of them by hand, so they are few.
SELECT e.tenant_id, e.subject, e.account, e.event_id, e.signal, e.happened_at, e.received_at
FROM {subjects: tenant_id text, subject text} AS g
JOIN webhook_event AS e ON e.tenant_id = g.tenant_id AND e.subject = g.subject;

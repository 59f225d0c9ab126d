-- name: lock_gates
-- Of the flows that belong to a broadcast. A pause or a cancel waits for this lock, and comes after the claim.
SELECT f.id AS flow_id, b.gate
FROM {flows: flow_id whole} AS g
JOIN flow AS f ON f.id = g.flow_id
JOIN broadcast AS b ON b.tenant_id = f.tenant_id AND b.broadcast = f.broadcast
FOR SHARE OF b;

-- name: find_rows_behind
-- Rows that must let another one of their order key go first: one that is in flight, or an earlier one behind an open
-- gate that is due, in line, or at most :soon from its retry. One that is pinned to an account waits for its replay and
-- holds up nobody. Asked after the rows were locked, so that what was closed before is not waited for. Each look-up
-- names the whole condition of the order index and nothing that would do for the queue's index (`lock_next_in_line`);
-- therefore the CASE around the due time.
SELECT o.bucket, o.id
FROM {rows: bucket whole, id whole} AS g
JOIN outgoing_message AS o ON o.bucket = g.bucket AND o.id = g.id AND o.order_key IS NOT NULL
WHERE
  EXISTS (
    SELECT 1
    FROM outgoing_message AS e
    WHERE
      e.order_key = o.order_key AND (e.due_at IS NOT NULL OR e.lease_until IS NOT NULL) AND e.id <> o.id
      AND e.status = 'Sending'
  )
  OR EXISTS (
    SELECT 1
    FROM outgoing_message AS e
    JOIN flow AS f ON f.id = e.flow_id AND f.account = ''
    WHERE
      e.order_key = o.order_key AND (e.due_at IS NOT NULL OR e.lease_until IS NOT NULL) AND e.id < o.id
      AND CASE
        WHEN e.in_line THEN true
        WHEN e.status = 'RetryReady' THEN e.due_at <= now() + CAST(:soon AS interval)
        ELSE e.due_at <= now()
      END
      AND NOT EXISTS (
        SELECT 1
        FROM broadcast AS b
        WHERE b.tenant_id = f.tenant_id AND b.broadcast = f.broadcast AND b.gate <> 'Open'
      )
  );

-- name: find_suppressions_of_rows
-- All that is known of each row's destination and of its recipient, also under scopes that do not apply to the row:
-- which of them stop it is the rule's to say. Asked after the rows were locked, so that whatever was committed before
-- the claim began is among it.
SELECT o.id, s.scope, s.cause
FROM {rows: bucket whole, id whole} AS g
JOIN outgoing_message AS o ON o.bucket = g.bucket AND o.id = g.id
JOIN address_version AS a ON a.id = o.address_id
JOIN suppression AS s ON s.tenant_id = o.tenant_id AND s.subject = a.destination_index
UNION ALL
SELECT o.id, s.scope, s.cause
FROM {rows: bucket whole, id whole} AS g
JOIN outgoing_message AS o ON o.bucket = g.bucket AND o.id = g.id
JOIN address_version AS a ON a.id = o.address_id
JOIN suppression AS s ON s.tenant_id = o.tenant_id AND s.subject = a.recipient_id_hash;

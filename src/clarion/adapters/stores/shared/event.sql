-- name: insert_entity_events
-- The look-up, the order and ON CONFLICT as in every insert of an ensure. An event that does not say when it is to be
-- handled is to be handled now. Ids are given in the order asked, because events that wait are claimed in that order.
INSERT INTO entity_event (
  id, tenant_id, created_at, partition_key, row_key, event_guid, event_type, entity_type, entity_guid, occurred_at,
  source_type, source, source_version, business_unit, data, data_hash, actor, status, version, due_at, lease_until,
  retry_count, rescue_count, reason, metrics, correlation_id, traceparent
)
OVERRIDING SYSTEM VALUE
SELECT
  n.id, :tenant_id, now(), n.partition_key, n.row_key, n.event_guid, n.event_type, n.entity_type, n.entity_guid,
  n.occurred_at, n.source_type, n.source, n.source_version, n.business_unit, n.data, n.data_hash, n.actor, n.status,
  n.version, coalesce(n.due_at, now()), n.lease_until, n.retry_count, n.rescue_count, n.reason, n.metrics,
  n.correlation_id, n.traceparent
FROM (
  SELECT next_id(entity_event) AS id, g.*
  FROM {
    items: partition_key text, row_key text, event_guid guid, event_type text, entity_type text, entity_guid guid,
    occurred_at instant, source_type text, source text, source_version whole, business_unit guid, data bytes,
    data_hash text, actor text, status text, version whole, due_at instant, lease_until instant, retry_count whole,
    rescue_count whole, reason text, metrics text, correlation_id text, traceparent text
  } AS g
  WHERE (
    SELECT e.id FROM entity_event AS e WHERE e.tenant_id = :tenant_id AND e.event_guid = g.event_guid
  ) IS NULL
) AS n
WHERE true
ORDER BY n.event_guid
ON CONFLICT DO NOTHING
RETURNING id;

-- name: read_entity_events
-- Whoever made them.
SELECT e.*
FROM {items: event_guid guid} AS g
JOIN entity_event AS e ON e.tenant_id = :tenant_id AND e.event_guid = g.event_guid;

-- name: read_event_turn
-- There is one.
SELECT t.after_tenant FROM event_turn AS t WHERE t.only_row;

-- name: put_event_turn
-- Last in its transaction, so that whoever waits for it does not wait long.
UPDATE event_turn SET after_tenant = :after WHERE only_row;

-- name: find_waiting_tenants
-- From tenant to tenant along the index, one look for each however many events it has; and whether its first is due.
WITH RECURSIVE walk AS (
  SELECT
    (
      SELECT e.tenant_id
      FROM entity_event AS e
      WHERE e.due_at IS NOT NULL AND e.tenant_id > :after
      ORDER BY e.tenant_id
      LIMIT 1
    ) AS tenant_id,
    1 AS n
  UNION ALL
  SELECT
    (
      SELECT e.tenant_id
      FROM entity_event AS e
      WHERE e.due_at IS NOT NULL AND e.tenant_id > w.tenant_id
      ORDER BY e.tenant_id
      LIMIT 1
    ),
    w.n + 1
  FROM walk AS w
  WHERE w.tenant_id IS NOT NULL AND w.n < :most
)
SELECT
  w.tenant_id,
  (
    SELECT e.due_at
    FROM entity_event AS e
    WHERE e.tenant_id = w.tenant_id AND e.due_at IS NOT NULL
    ORDER BY e.due_at
    LIMIT 1
  ) <= now() AS is_due
FROM walk AS w
WHERE w.tenant_id IS NOT NULL;

-- name: lock_due_events
-- The first ones of each tenant. What another worker holds is passed over.
SELECT g.place, f.due_at, f.id
FROM {tenants: tenant_id text, place place} AS g
CROSS JOIN LATERAL (
  SELECT e.id AS value
  FROM entity_event AS e
  WHERE e.tenant_id = g.tenant_id AND e.due_at IS NOT NULL AND e.due_at <= now()
  ORDER BY e.due_at, e.id
  LIMIT :part
  FOR UPDATE SKIP LOCKED
) AS h
JOIN entity_event AS f ON f.id = h.value;

-- name: take_events
-- Ready → Processing, of events that are locked; were their state named here, it might be looked up by instead.
UPDATE entity_event AS e
SET status = 'Processing', version = e.version + 1, due_at = NULL, lease_until = now() + :lease
FROM {ids: event_id whole} AS g
WHERE e.id = +g.event_id
RETURNING *;

-- name: finish_events
-- Where the claim still stands: another version means that somebody else has moved the row. Rows are locked in their
-- order first. Whoever comes to an end, or to another try, has lost no worker.
UPDATE entity_event AS e
SET
  status = g.to_status,
  version = e.version + 1,
  due_at = CASE WHEN g.to_status = 'Ready' THEN now() + g.delay END,
  lease_until = NULL,
  retry_count = e.retry_count + CASE WHEN g.to_status = 'Ready' THEN 1 ELSE 0 END,
  rescue_count = 0,
  reason = g.why,
  metrics = coalesce(g.counted, e.metrics)
FROM (
  SELECT g.*
  FROM {
    ends: tenant text, event_id whole, at_version whole, to_status text, delay duration, why text, counted text
  } AS g
  JOIN entity_event AS h
    ON h.id = g.event_id AND h.tenant_id = g.tenant AND h.version = g.at_version AND h.status = 'Processing'
  FOR UPDATE OF h
) AS g
WHERE e.id = +g.event_id
RETURNING id;

-- name: read_events
-- Of the few of a batch that need a support case.
SELECT e.*
FROM {ids: id whole} AS g
JOIN entity_event AS e ON e.id = g.id;

-- name: lock_expired_events
-- Claims whose lease ran out, the oldest first. One that is just being finished is passed over.
SELECT e.*
FROM entity_event AS e
WHERE e.lease_until <= now()
ORDER BY e.lease_until, e.id
LIMIT :limit
FOR UPDATE SKIP LOCKED;

-- name: rescue_events
-- Back to Ready, or to Failed where every worker that took the event was lost (I-23).
UPDATE entity_event AS e
SET
  status = g.to_status,
  version = e.version + 1,
  due_at = CASE WHEN g.to_status = 'Ready' THEN now() END,
  lease_until = NULL,
  rescue_count = e.rescue_count + 1,
  reason = coalesce(g.why, e.reason)
FROM {rows: event_id whole, to_status text, why text} AS g
WHERE e.id = +g.event_id;

-- name: retry_event
-- A person's word: what failed before is forgiven.
UPDATE entity_event
SET
  status = 'Ready', version = version + 1, due_at = now(), rescue_count = 0, retry_count = 0, reason = :reason
WHERE tenant_id = :tenant_id AND event_guid = :event_guid AND status = 'Failed';

-- name: list_entity_events
-- Pages by the index of the newest, from its end.
SELECT e.*
FROM entity_event AS e
WHERE e.tenant_id = :tenant_id AND (e.occurred_at, e.id) < (:before_at, :before)
ORDER BY e.occurred_at DESC, e.id DESC
LIMIT :limit;

-- name: list_entity_events_by_status
-- By the index of states, from its end. The state is compared and ordered by too, so that no other index will do: that of
-- the newest would be walked to its end for a rare state.
SELECT e.*
FROM entity_event AS e
WHERE
  e.tenant_id = :tenant_id AND e.status >= :status
  AND (e.status, e.occurred_at, e.id) < (:status, :before_at, :before)
ORDER BY e.status DESC, e.occurred_at DESC, e.id DESC
LIMIT :limit;

-- name: list_entity_events_of
-- The story of one entity, from its end; written as the list of one state is, and for the same reason.
SELECT e.*
FROM entity_event AS e
WHERE
  e.tenant_id = :tenant_id AND (e.entity_type, e.entity_guid) >= (:entity_type, :entity_guid)
  AND (e.entity_type, e.entity_guid, e.occurred_at, e.id) < (:entity_type, :entity_guid, :before_at, :before)
  AND (CAST(:status AS text) IS NULL OR e.status = CAST(:status AS text))
ORDER BY e.entity_type DESC, e.entity_guid DESC, e.occurred_at DESC, e.id DESC
LIMIT :limit;

-- name: insert_repair
-- With the first setting about a type of source. What changed before is gone through for the setting itself.
INSERT INTO repair (tenant_id, source_type, watermark_at, due_at, next_at)
VALUES (:tenant_id, :source_type, now(), now(), now())
ON CONFLICT DO NOTHING;

-- name: walk_repaired_types
-- From type to type along the index, one look for each however many tenants have it.
WITH RECURSIVE walk AS (
  SELECT
    (
      SELECT r.source_type FROM repair AS r WHERE r.source_type > :after ORDER BY r.source_type LIMIT 1
    ) AS source_type,
    1 AS n
  UNION ALL
  SELECT
    (
      SELECT r.source_type FROM repair AS r WHERE r.source_type > w.source_type ORDER BY r.source_type LIMIT 1
    ),
    w.n + 1
  FROM walk AS w
  WHERE w.source_type IS NOT NULL AND w.n < :most
)
SELECT w.source_type FROM walk AS w WHERE w.source_type IS NOT NULL;

-- name: lock_due_repairs
-- The first ones of each type. One that another worker takes is passed over.
SELECT r.due_at, r.tenant_id, r.source_type
FROM {types: source_type text} AS g
CROSS JOIN LATERAL (
  SELECT d.tenant_id AS value
  FROM repair AS d
  WHERE d.source_type = g.source_type AND d.due_at <= now()
  ORDER BY d.due_at, d.tenant_id
  LIMIT :part
  FOR UPDATE SKIP LOCKED
) AS h
JOIN repair AS r ON r.tenant_id = h.value AND r.source_type = g.source_type;

-- name: take_repairs
-- All of them are there and locked, so nothing is inserted; written so, each is found by its key on both engines. A round
-- that is under way goes on, another one begins now. In the order in which they came due.
INSERT INTO repair (tenant_id, source_type, watermark_at, due_at, next_at)
SELECT g.tenant_id, g.source_type, now(), now() + :lease, now() + :every
FROM {keys: tenant_id text, source_type text} AS g
WHERE true
ON CONFLICT (tenant_id, source_type) DO UPDATE
SET
  due_at = excluded.due_at,
  next_at = CASE WHEN repair.round_at IS NULL THEN excluded.next_at ELSE repair.next_at END,
  round_at = coalesce(repair.round_at, excluded.watermark_at),
  token = repair.token + 1
RETURNING tenant_id, source_type, watermark_at, round_at, cursor, token;

-- name: finish_repair
-- Where the claim still stands. At the end of a round the watermark moves, never back and never behind the beginning of
-- the round, before which everything was read.
UPDATE repair
SET
  watermark_at = CASE
    WHEN CAST(:cursor AS text) IS NOT NULL THEN watermark_at
    WHEN CAST(:watermark_at AS timestamptz) > round_at THEN round_at
    WHEN CAST(:watermark_at AS timestamptz) > watermark_at THEN CAST(:watermark_at AS timestamptz)
    ELSE watermark_at
  END,
  round_at = CASE WHEN CAST(:cursor AS text) IS NULL THEN NULL ELSE round_at END,
  due_at = CASE WHEN CAST(:cursor AS text) IS NULL THEN next_at ELSE now() END,
  cursor = CAST(:cursor AS text),
  token = token + 1
WHERE tenant_id = :tenant_id AND source_type = :source_type AND token = :token;

-- name: name_array_types
-- Prepared on every new connection and never executed: asyncpg looks up each array type once a connection, with a
-- query of its own, and would do so inside the transaction of the first batch.
SELECT
  $1::bigint[], $2::uuid[], $3::smallint[], $4::timestamptz[], $5::integer[], $6::text[], $7::boolean[], $8::interval[];

-- name: forget_plans
-- Prepared statements stay prepared; each is planned again when it is used next.
DISCARD PLANS;

-- name: insert_tenant
-- One statement makes the tenant and its keys: whoever did not make the tenant adds no key to it, so the loser of a
-- race never mixes its keys with the winner's. The look-up first spares a repeat every write. A row means: made here.
WITH made AS (
  INSERT INTO tenant (tenant_id)
  SELECT $1
  WHERE NOT EXISTS (SELECT FROM tenant AS t WHERE t.tenant_id = $1)
  ON CONFLICT DO NOTHING
  RETURNING tenant_id
), keyed AS (
  INSERT INTO tenant_key (tenant_id, purpose, serial, wrapped)
  SELECT made.tenant_id, g.purpose, g.serial, decode(g.wrapped, 'base64')
  FROM made
  CROSS JOIN json_to_recordset($2::json) AS g (purpose text, serial integer, wrapped text)
)
SELECT tenant_id FROM made;

-- name: read_tenant_keys
-- No row means no tenant; a tenant without keys is one row of nulls.
SELECT k.purpose, k.serial, k.wrapped
FROM tenant AS t
LEFT JOIN LATERAL (
  SELECT purpose, serial, wrapped FROM tenant_key WHERE tenant_key.tenant_id = t.tenant_id OFFSET 0
) AS k ON true
WHERE t.tenant_id = $1;

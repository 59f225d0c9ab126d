-- name: insert_tenant
-- Whoever did not make the tenant adds no key to it. The look-up first spares a repeat every write.
INSERT INTO tenant (tenant_id, created_at)
SELECT :tenant_id, clarion_now()
WHERE NOT EXISTS (SELECT 1 FROM tenant AS t WHERE t.tenant_id = :tenant_id)
RETURNING tenant_id;

-- name: insert_tenant_keys
-- In the transaction that made the tenant, and never after it.
INSERT INTO tenant_key (tenant_id, purpose, serial, wrapped, created_at)
SELECT
  :tenant_id, g.value ->> 'purpose', g.value ->> 'serial', clarion_bytes(g.value ->> 'wrapped'), clarion_now()
FROM json_each(:items) AS g;

-- name: read_tenant_keys
-- No row means no tenant; a tenant without keys is one row of nulls.
SELECT k.purpose, k.serial, k.wrapped
FROM tenant AS t
LEFT JOIN tenant_key AS k ON k.tenant_id = t.tenant_id
WHERE t.tenant_id = :tenant_id;

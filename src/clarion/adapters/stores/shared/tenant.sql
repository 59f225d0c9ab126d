-- name: insert_tenant
-- Whoever did not make the tenant adds no key to it, so the loser of a race never mixes its keys with the winner's. The
-- look-up first spares a repeat every write.
INSERT INTO tenant (tenant_id, created_at)
SELECT :tenant_id, now()
WHERE NOT EXISTS (SELECT 1 FROM tenant AS t WHERE t.tenant_id = :tenant_id)
ON CONFLICT DO NOTHING;

-- name: insert_tenant_keys
-- In the transaction that made the tenant, and never after it.
INSERT INTO tenant_key (tenant_id, purpose, serial, wrapped, created_at)
SELECT :tenant_id, g.purpose, g.serial, g.wrapped, now()
FROM {keys: purpose text, serial whole, wrapped bytes} AS g;

-- name: read_tenant_keys
-- No row means no tenant; a tenant without keys is one row of nulls.
SELECT k.purpose, k.serial, k.wrapped
FROM tenant AS t
LEFT JOIN tenant_key AS k ON k.tenant_id = t.tenant_id
WHERE t.tenant_id = :tenant_id;

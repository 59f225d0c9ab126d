-- outside a transaction
-- Finds those of other editions without going through all.
DROP INDEX CONCURRENTLY IF EXISTS reminder_setting_tzdata;
CREATE INDEX CONCURRENTLY reminder_setting_tzdata ON reminder_setting (tzdata_version, tenant_id, guid) WHERE plan_at IS NULL;

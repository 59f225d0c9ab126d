-- Finds those of other editions without going through all.
CREATE INDEX reminder_setting_tzdata ON reminder_setting (tzdata_version, tenant_id, guid) WHERE plan_at IS NULL;

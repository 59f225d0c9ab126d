-- name: copy_tenant
-- Its language and zone.
SELECT t.*
FROM tenant AS t
WHERE t.tenant_id = :tenant_id
LIMIT :most;

-- name: copy_tenant_key
-- Wrapped: whoever reads the copy opens them by the same vault.
SELECT t.*
FROM tenant_key AS t
WHERE t.tenant_id = :tenant_id
LIMIT :most;

-- name: copy_business_unit
-- Their languages and zones.
SELECT t.*
FROM business_unit AS t
WHERE t.tenant_id = :tenant_id
LIMIT :most;

-- name: copy_unit_member
-- Who is in a business unit.
SELECT t.*
FROM unit_member AS t
WHERE t.tenant_id = :tenant_id
LIMIT :most;

-- name: copy_audience_group
-- Groups.
SELECT t.*
FROM audience_group AS t
WHERE t.tenant_id = :tenant_id
LIMIT :most;

-- name: copy_group_child
-- Groups in groups.
SELECT t.*
FROM group_child AS t
WHERE t.tenant_id = :tenant_id
LIMIT :most;

-- name: copy_group_member
-- Who is in a group.
SELECT t.*
FROM group_member AS t
WHERE t.tenant_id = :tenant_id
LIMIT :most;

-- name: copy_role_holder
-- Who holds a role.
SELECT t.*
FROM role_holder AS t
WHERE t.tenant_id = :tenant_id
LIMIT :most;

-- name: copy_entity_relation
-- Who is related to what.
SELECT t.*
FROM entity_relation AS t
WHERE t.tenant_id = :tenant_id
LIMIT :most;

-- name: copy_person
-- People.
SELECT t.*
FROM person AS t
WHERE t.tenant_id = :tenant_id
LIMIT :most;

-- name: copy_person_version
-- Their profiles, sealed.
SELECT t.*
FROM person_version AS t
WHERE t.tenant_id = :tenant_id
LIMIT :most;

-- name: copy_contact
-- Where they are reached.
SELECT t.*
FROM contact AS t
WHERE t.tenant_id = :tenant_id
LIMIT :most;

-- name: copy_address_version
-- Their addresses, sealed.
SELECT t.*
FROM address_version AS t
WHERE t.tenant_id = :tenant_id
LIMIT :most;

-- name: copy_suppression
-- Who gets nothing of what.
SELECT t.*
FROM suppression AS t
WHERE t.tenant_id = :tenant_id
LIMIT :most;

-- name: copy_type_setting
-- What the tenant says of notification types.
SELECT t.*
FROM type_setting AS t
WHERE t.tenant_id = :tenant_id
LIMIT :most;

-- name: copy_unit_setting
-- What business units say of them.
SELECT t.*
FROM unit_setting AS t
WHERE t.tenant_id = :tenant_id
LIMIT :most;

-- name: copy_event_mapping
-- What events lead to at once.
SELECT t.*
FROM event_mapping AS t
WHERE t.tenant_id = :tenant_id
LIMIT :most;

-- name: copy_reminder_setting
-- Reminder settings.
SELECT t.*
FROM reminder_setting AS t
WHERE t.tenant_id = :tenant_id
LIMIT :most;

-- name: copy_report_subscription
-- Which report goes to whom.
SELECT t.*
FROM report_subscription AS t
WHERE t.tenant_id = :tenant_id
LIMIT :most;

-- name: copy_source_record
-- What reminders are about, sealed.
SELECT t.*
FROM source_record AS t
WHERE t.tenant_id = :tenant_id
LIMIT :most;

-- name: copy_source_day
-- Their dates.
SELECT t.*
FROM source_day AS t
WHERE t.tenant_id = :tenant_id
LIMIT :most;

-- name: copy_source_plan
-- How many plans of each source were carried out.
SELECT t.*
FROM source_plan AS t
WHERE t.tenant_id = :tenant_id
LIMIT :most;

-- name: copy_threshold_state
-- What thresholds were last.
SELECT t.*
FROM threshold_state AS t
WHERE t.tenant_id = :tenant_id
LIMIT :most;

-- name: copy_template
-- The latest version of each, which is what anything new is made with.
SELECT t.*
FROM template AS t
WHERE
  t.tenant_id = :tenant_id
  AND t.version = (
    SELECT max(u.version) FROM template AS u WHERE u.tenant_id = t.tenant_id AND u.template_key = t.template_key
  )
LIMIT :most;

-- name: copy_automation_scheduler
-- What waits and is due by then, whatever holds it back.
SELECT t.*
FROM automation_scheduler AS t
WHERE t.tenant_id = :tenant_id AND t.standing IN {standings: text} AND t.due_at <= :until
LIMIT :most;

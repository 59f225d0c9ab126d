"""Tables so full that a bad plan shows: `fill` and `FILL` make thousands of rows of every table, 20,000 of messages."""

from typing import Final

from clarion.adapters.stores.postgres import PostgresStore
from clarion.testing import factories as make
from clarion.testing.contracts.planning import plan, state

TENANT: Final = "acme"
ROWS: Final = 2000  # of most tables: far more than a page, and soon made

FILL: Final = """
INSERT INTO tenant (tenant_id) SELECT 'other-' || n FROM generate_series(1, 2000) AS n;
INSERT INTO tenant_key (tenant_id, purpose, serial, wrapped) SELECT tenant_id, 'data', 1, 'x' FROM tenant
ON CONFLICT DO NOTHING;
INSERT INTO support_case (tenant_id, case_id, kind, status, record, record_key, details, correlation_id)
SELECT 'acme', gen_random_uuid(), 'Hold', CASE WHEN n % 10 = 0 THEN 'Open' ELSE 'Resolved' END, 'r', 'k', '', 'c'
FROM generate_series(1, 2000) AS n;
INSERT INTO broadcast (tenant_id, broadcast) SELECT 'acme', 's' || n FROM generate_series(1, 2000) AS n;
INSERT INTO flow (tenant_id, lane, route, broadcast) SELECT 'acme', 'bulk', 'sms', 's' || n
FROM generate_series(1, 2000) AS n;
INSERT INTO outgoing_message (
  tenant_id, bucket, pk, rk, message_id, address_id, channel, flow_id, order_key, due_at, correlation_id
)
SELECT
  'acme', 202512, 'pk-' || n, md5(n::text) || '_email', gen_random_uuid(), n, 'email', (SELECT max(id) FROM flow),
  md5(n::text), now(), 'c'
FROM generate_series(1, 20000) AS n;
INSERT INTO outgoing_key (tenant_id, bucket, pk, rk, message_id, outgoing_id)
SELECT tenant_id, bucket, pk, rk, message_id, id FROM outgoing_message WHERE pk LIKE 'pk-%';
INSERT INTO transition (tenant_id, bucket, outgoing_id, version, from_status, to_status, actor)
SELECT tenant_id, bucket, id, 2, 'Created', 'Sending', 'w' FROM outgoing_message WHERE pk LIKE 'pk-%';
INSERT INTO delivery_attempt (
  tenant_id, bucket, outgoing_id, attempt, claim_token, account, status, provider_message_id, correlation_id
)
SELECT tenant_id, bucket, id, 1, gen_random_uuid(), 'main', 'Accepted', 'pid-' || id, 'c'
FROM outgoing_message WHERE pk LIKE 'pk-%';
INSERT INTO webhook_event (tenant_id, account, event_id, status, message_id, happened_at, raw, look_at, applied_at)
SELECT 'acme', 'main', 'old-' || n, 'Delivered', gen_random_uuid(), now(), '', now(), now()
FROM generate_series(1, 2000) AS n;
INSERT INTO person (tenant_id, recipient_id_hash, domain, person_id, profile)
SELECT 'acme', md5(n::text), 'user', 'other-' || n, '' FROM generate_series(1, 2000) AS n;
INSERT INTO person_attribute (tenant_id, recipient_id_hash, name, value)
SELECT 'acme', md5(n::text), 'grade', n % 10 FROM generate_series(1, 5000) AS n;
INSERT INTO business_unit (tenant_id, guid, name)
SELECT 'other-' || n % 100, gen_random_uuid(), 'u' || n FROM generate_series(1, 2000) AS n;
INSERT INTO contact (tenant_id, recipient_id_hash, channel, address_id)
SELECT 'acme', md5(n::text), 'email', n FROM generate_series(1, 2000) AS n;
INSERT INTO audience_group (tenant_id, guid, name)
SELECT 'acme', gen_random_uuid(), 'g' FROM generate_series(1, 2000) AS n;
INSERT INTO group_member (tenant_id, group_guid, recipient_id_hash)
SELECT 'acme', guid, md5(guid::text) FROM audience_group;
INSERT INTO group_member (tenant_id, group_guid, recipient_id_hash)
SELECT 'acme', '00000000-0000-4000-8000-000000000001', md5(n::text) FROM generate_series(1, 5000) AS n;
INSERT INTO group_child (tenant_id, group_guid, child_guid)
SELECT 'acme', guid, gen_random_uuid() FROM audience_group;
INSERT INTO unit_member (tenant_id, unit_guid, recipient_id_hash)
SELECT 'acme', '00000000-0000-4000-8000-000000000001', md5(n::text) FROM generate_series(1, 5000) AS n;
INSERT INTO role_holder (tenant_id, role, recipient_id_hash)
SELECT 'acme', 'teacher', md5(n::text) FROM generate_series(1, 5000) AS n;
INSERT INTO entity_relation (tenant_id, entity_type, entity_guid, relation, recipient_id_hash)
SELECT 'acme', 'class', '00000000-0000-4000-8000-000000000001', 'guardian', md5(n::text)
FROM generate_series(1, 5000) AS n;
INSERT INTO source_record (
  tenant_id, source_type, source, entity_guid, active, content, content_hash, row_version, changed_at
)
SELECT
  'acme', 'invoice', 'other-' || n, gen_random_uuid(), n % 2 = 0, '', 'h', 1, now() - n * interval '1 s'
FROM generate_series(1, 5000) AS n;
INSERT INTO source_day (tenant_id, source_type, source, name, day)
SELECT 'acme', 'invoice', 'other-' || n, 'due', date '2026-01-01' + n FROM generate_series(1, 5000) AS n;
INSERT INTO event_mapping (tenant_id, event_type, changed_by)
SELECT 'acme', 'other-' || n, 'sam' FROM generate_series(1, 2000) AS n;
INSERT INTO reminder_setting (
  tenant_id, guid, source_type, setting, version, planned_version, plan_at, changed_by
)
SELECT
  CASE WHEN n <= 2000 THEN 'acme' ELSE 'other-' || n END, CAST(md5(n::text) AS uuid), 'other-' || n % 50,
  json_build_object(
    'guid', CAST(md5(n::text) AS uuid), 'name', 'n', 'source_type', 'invoice', 'notification_type', 'n',
    'rule', json_build_object('on', 'date', 'field', 'due')
  )::text, 2, 2 - n % 2, CASE WHEN n % 2 = 1 THEN now() END, 'sam'
FROM generate_series(1, 4000) AS n;
INSERT INTO repair (tenant_id, source_type, watermark_at, due_at, next_at)
SELECT 'other-' || n, 'other-' || n % 50, now(), now(), now() FROM generate_series(1, 4000) AS n;
INSERT INTO entity_event (
  tenant_id, partition_key, row_key, event_guid, event_type, entity_type, entity_guid, occurred_at, data_hash, status,
  due_at, correlation_id
)
SELECT
  CASE WHEN n <= 5000 THEN 'acme' ELSE 'other-' || n END, 'p', 'r', gen_random_uuid(), 'order.shipped', 'order',
  gen_random_uuid(), now(), '', CASE WHEN n % 2 = 0 THEN 'Ready' ELSE 'Done' END,
  CASE WHEN n % 2 = 0 THEN now() END, 'c'
FROM generate_series(1, 7000) AS n;
INSERT INTO suppression (tenant_id, subject, scope, cause, created_by, created_at)
SELECT 'acme', md5(n::text), '*', 'bounce', 'track', now() - n * interval '1 s' FROM generate_series(1, 2000) AS n;
INSERT INTO user_message (
  tenant_id, bucket, partition_key, row_key, message_id, recipient_id_hash, job_row_key, event_type, content,
  correlation_id, in_inbox
)
SELECT
  'acme', 202511, 'user:reader', lpad(n::text, 19, '0'), gen_random_uuid(), '00000000000000000000000000000001',
  'read-' || n, 'welcome', 'x', 'c', true
FROM generate_series(1, 5000) AS n;
INSERT INTO inbox_state (tenant_id, recipient_id_hash, row_key, bucket, user_message_id, mark, expires_at)
SELECT
  tenant_id, recipient_id_hash, row_key, bucket, id, 0,
  CASE WHEN id % 2 = 0 THEN now() + make_interval(mins => (id % 1000)::integer) END
FROM user_message WHERE partition_key = 'user:reader';
INSERT INTO recipient_job (tenant_id, recipient_id_hash, job_key, job_id)
SELECT 'acme', md5((n % 7)::text), lpad(n::text, 19, '0'), n FROM generate_series(1, 7000) AS n;
INSERT INTO recipient_job (tenant_id, recipient_id_hash, job_key, job_id)
SELECT 'acme', '00000000000000000000000000000001', lpad(n::text, 19, '0'), j.id
FROM generate_series(1, 5000) AS n
JOIN (SELECT min(id) AS first, max(id) AS last FROM notification_job) AS known ON true
JOIN notification_job AS j ON j.id = known.first + n % (known.last - known.first + 1);
UPDATE notification_job SET recipients = '[]' WHERE tenant_id = 'acme' AND recipients IS NULL AND id % 2 = 0;
INSERT INTO inbox_count (tenant_id, recipient_id_hash, lines, unseen, unread)
VALUES ('acme', '00000000000000000000000000000001', 5000, 5000, 5000);
INSERT INTO template (tenant_id, template_key, version, content_hash, bundle)
SELECT 'other-' || n % 100, 'key-' || n % 10, n, 'h1:x', '' FROM generate_series(1, 2000) AS n;
INSERT INTO type_setting (tenant_id, event_type, enabled, changed_by)
SELECT 'other-' || n % 100, 'type-' || n, false, 'sam' FROM generate_series(1, 2000) AS n;
INSERT INTO unit_setting (tenant_id, event_type, unit_guid, enabled, changed_by)
SELECT 'other-' || n % 100, 'type-' || n % 10, gen_random_uuid(), false, 'sam' FROM generate_series(1, 2000) AS n;
INSERT INTO api_key (key_id, tenant_id, secret_hash, actor, role)
SELECT 'key-id-' || n, 'other-' || n, 'h1:x', 'sam', 'viewer' FROM generate_series(1, 2000) AS n;
INSERT INTO usage_count (tenant_id, key_id, day)
SELECT 'other-' || n, 'key-id-' || n, '2026-01-01' FROM generate_series(1, 2000) AS n;
INSERT INTO audit_log (tenant_id, seq, actor, act, subject, previous_hash, hash)
SELECT 'other-1', n, 'sam', 'a', 's', '', 'h' FROM generate_series(1, 2000) AS n;
"""


async def fill(store: PostgresStore) -> None:
    """Store thousands of records of every kind that an ensure makes."""
    for start in range(0, ROWS, 1000):
        numbers = range(start, start + 1000)
        await store.apply_plans(
            TENANT, [plan(n, ensure=(make.automation_scheduler(n),), states=(state(n),)) for n in numbers]
        )
        await store.ensure_automation_jobs(TENANT, [make.automation_job(n) for n in numbers])
        await store.ensure_notification_jobs(TENANT, [make.guarded_entry(f"key-{n}") for n in numbers])
        await store.ensure_messaging_jobs(TENANT, [make.messaging_job(n) for n in numbers])
        await store.ensure_user_messages(TENANT, [make.user_message(n, job_row_key=f"job-{n}") for n in numbers])
        versions = await store.ensure_address_versions(TENANT, [make.address_version(n) for n in numbers])
        await store.ensure_person_versions(TENANT, [make.person_version(n) for n in numbers])
        items = make.outgoing_items(make.messaging_job(2), [version.record for version in versions])
        await store.ensure_outgoing_messages(TENANT, items)

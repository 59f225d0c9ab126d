-- outside a transaction
-- The indexes that finding work, history and people stand on. Built concurrently, as every later index will be,
-- so that a program at work is never held up; the drop first clears what an interrupted build left invalid.

DROP INDEX CONCURRENTLY IF EXISTS automation_scheduler_due;
CREATE INDEX CONCURRENTLY automation_scheduler_due ON automation_scheduler (scheduled_at, id) WHERE status = 'Pending' AND NOT on_support_hold;
DROP INDEX CONCURRENTLY IF EXISTS automation_scheduler_source;
CREATE INDEX CONCURRENTLY automation_scheduler_source ON automation_scheduler (tenant_id, source_type, source, setting);
DROP INDEX CONCURRENTLY IF EXISTS notification_job_history;
CREATE INDEX CONCURRENTLY notification_job_history ON notification_job (tenant_id, partition_key, row_key COLLATE "C");
DROP INDEX CONCURRENTLY IF EXISTS notification_scheduler_due;
CREATE INDEX CONCURRENTLY notification_scheduler_due ON notification_scheduler (stage, lane, due_at, id) WHERE due_at IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS notification_scheduler_lease;
CREATE INDEX CONCURRENTLY notification_scheduler_lease ON notification_scheduler (lease_until) WHERE lease_until IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS address_version_destination;
CREATE INDEX CONCURRENTLY address_version_destination ON address_version (tenant_id, destination_index);
DROP INDEX CONCURRENTLY IF EXISTS user_message_message;
CREATE INDEX CONCURRENTLY user_message_message ON user_message (tenant_id, message_id);
DROP INDEX CONCURRENTLY IF EXISTS outgoing_key_message;
CREATE INDEX CONCURRENTLY outgoing_key_message ON outgoing_key (tenant_id, message_id);
DROP INDEX CONCURRENTLY IF EXISTS outgoing_message_queue;
CREATE INDEX CONCURRENTLY outgoing_message_queue ON outgoing_message (flow_id, due_at, id) WHERE due_at IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS outgoing_message_lease;
CREATE INDEX CONCURRENTLY outgoing_message_lease ON outgoing_message (lease_until) WHERE lease_until IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS outgoing_message_order;
CREATE INDEX CONCURRENTLY outgoing_message_order ON outgoing_message (order_key, id) WHERE order_key IS NOT NULL AND (due_at IS NOT NULL OR lease_until IS NOT NULL);
DROP INDEX CONCURRENTLY IF EXISTS support_case_list;
CREATE INDEX CONCURRENTLY support_case_list ON support_case (tenant_id, status, case_id);

-- The indexes that finding work, history and people stand on.

CREATE INDEX automation_scheduler_due ON automation_scheduler (scheduled_at, id) WHERE status = 'Pending' AND on_support_hold = 0;
CREATE INDEX automation_scheduler_source ON automation_scheduler (tenant_id, source_type, source, setting);
CREATE INDEX notification_job_history ON notification_job (tenant_id, partition_key, row_key);
CREATE INDEX notification_scheduler_due ON notification_scheduler (stage, lane, due_at, id) WHERE due_at IS NOT NULL;
CREATE INDEX notification_scheduler_lease ON notification_scheduler (lease_until) WHERE lease_until IS NOT NULL;
CREATE INDEX address_version_destination ON address_version (tenant_id, destination_index);
CREATE INDEX user_message_message ON user_message (tenant_id, message_id);
CREATE INDEX outgoing_message_message ON outgoing_message (tenant_id, message_id);
CREATE INDEX outgoing_message_queue ON outgoing_message (flow_id, due_at, id) WHERE due_at IS NOT NULL;
CREATE INDEX outgoing_message_lease ON outgoing_message (lease_until) WHERE lease_until IS NOT NULL;
CREATE INDEX outgoing_message_order ON outgoing_message (order_key, id) WHERE order_key IS NOT NULL AND (due_at IS NOT NULL OR lease_until IS NOT NULL);
CREATE INDEX support_case_list ON support_case (tenant_id, status, case_id);

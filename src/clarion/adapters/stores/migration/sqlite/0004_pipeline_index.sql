-- Indexes of the pipeline: doubts to settle, cancels to carry out, receipts to apply and to match, flows to look
-- through, keys of a tenant, stories to tell.

CREATE INDEX outgoing_message_settle ON outgoing_message (settle_at) WHERE settle_at IS NOT NULL;
CREATE INDEX delivery_attempt_provider_message ON delivery_attempt (tenant_id, account, provider_message_id) WHERE provider_message_id IS NOT NULL;
CREATE INDEX webhook_event_waiting ON webhook_event (look_at, received_at) WHERE applied_at IS NULL;
CREATE INDEX api_key_tenant ON api_key (tenant_id);
CREATE INDEX outgoing_message_uncertain ON outgoing_message (tenant_id, id) WHERE status = 'Uncertain';
CREATE INDEX outgoing_message_cancel ON outgoing_message (cancel_at) WHERE cancel_at IS NOT NULL AND due_at IS NOT NULL;
CREATE INDEX outgoing_message_failed ON outgoing_message (tenant_id, id) WHERE status = 'FailedFinal';
CREATE INDEX notification_job_message ON notification_job (tenant_id, message_id) WHERE message_id IS NOT NULL;
CREATE INDEX user_message_job ON user_message (tenant_id, job_row_key);
CREATE INDEX webhook_event_message ON webhook_event (tenant_id, message_id) WHERE message_id IS NOT NULL;
CREATE INDEX webhook_event_provider_message ON webhook_event (tenant_id, account, provider_message_id) WHERE provider_message_id IS NOT NULL;
CREATE INDEX flow_route ON flow (route);
CREATE INDEX flow_source ON flow (tenant_id, source) WHERE source <> '';
CREATE INDEX source_canceled ON source (tenant_id, source) WHERE gate = 'Canceled';
CREATE INDEX support_case_open ON support_case (tenant_id, case_id) WHERE status = 'Open';

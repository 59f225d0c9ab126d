-- outside a transaction
-- Indexes of the pipeline: doubts to settle, cancels to carry out, receipts to apply and to match, flows to look
-- through, keys of a tenant, stories to tell.

DROP INDEX CONCURRENTLY IF EXISTS outgoing_message_settle;
CREATE INDEX CONCURRENTLY outgoing_message_settle ON outgoing_message (settle_at) WHERE settle_at IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS delivery_attempt_provider_message;
CREATE INDEX CONCURRENTLY delivery_attempt_provider_message ON delivery_attempt (tenant_id, account, provider_message_id) WHERE provider_message_id IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS webhook_event_waiting;
CREATE INDEX CONCURRENTLY webhook_event_waiting ON webhook_event (look_at, received_at) WHERE applied_at IS NULL;
DROP INDEX CONCURRENTLY IF EXISTS api_key_tenant;
CREATE INDEX CONCURRENTLY api_key_tenant ON api_key (tenant_id);
DROP INDEX CONCURRENTLY IF EXISTS outgoing_message_uncertain;
CREATE INDEX CONCURRENTLY outgoing_message_uncertain ON outgoing_message (tenant_id, id) WHERE status = 'Uncertain';
DROP INDEX CONCURRENTLY IF EXISTS outgoing_message_cancel;
CREATE INDEX CONCURRENTLY outgoing_message_cancel ON outgoing_message (cancel_at) WHERE cancel_at IS NOT NULL AND due_at IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS outgoing_message_failed;
CREATE INDEX CONCURRENTLY outgoing_message_failed ON outgoing_message (tenant_id, id) WHERE status = 'FailedFinal';
DROP INDEX CONCURRENTLY IF EXISTS notification_job_message;
CREATE INDEX CONCURRENTLY notification_job_message ON notification_job (tenant_id, message_id) WHERE message_id IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS user_message_job;
CREATE INDEX CONCURRENTLY user_message_job ON user_message (tenant_id, job_row_key);
DROP INDEX CONCURRENTLY IF EXISTS webhook_event_message;
CREATE INDEX CONCURRENTLY webhook_event_message ON webhook_event (tenant_id, message_id) WHERE message_id IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS webhook_event_provider_message;
CREATE INDEX CONCURRENTLY webhook_event_provider_message ON webhook_event (tenant_id, account, provider_message_id) WHERE provider_message_id IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS flow_route;
CREATE INDEX CONCURRENTLY flow_route ON flow (route);
DROP INDEX CONCURRENTLY IF EXISTS flow_source;
CREATE INDEX CONCURRENTLY flow_source ON flow (tenant_id, source) WHERE source <> '';
DROP INDEX CONCURRENTLY IF EXISTS source_canceled;
CREATE INDEX CONCURRENTLY source_canceled ON source (tenant_id, source) WHERE gate = 'Canceled';
DROP INDEX CONCURRENTLY IF EXISTS support_case_open;
CREATE INDEX CONCURRENTLY support_case_open ON support_case (tenant_id, case_id) WHERE status = 'Open';

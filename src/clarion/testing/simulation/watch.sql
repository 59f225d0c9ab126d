-- name: list_outgoing
-- All of them, since a run has a few dozen at most; with the recipient that the address version belongs to.
SELECT o.id, o.tenant_id, o.pk, o.rk, o.message_id, o.channel, o.status, o.version, o.due_at, o.lease_until,
       o.expires_at, o.cancel_at, o.claim_token, o.account, o.attempts, o.first_unknown_at, o.reason, o.uncertain_policy,
       o.settle_at, o.replays, a.recipient_id_hash, a.key_hash, a.destination_index, f.broadcast
FROM outgoing_message o JOIN address_version a ON a.id = o.address_id JOIN flow f ON f.id = o.flow_id
ORDER BY o.id;

-- name: list_schedulers
-- Scheduler rows of notification jobs, with what their stage and lease say.
SELECT id, tenant_id, artifact_rk, lane, stage, status, version, due_at, lease_until, retry_count, rescue_count, reason,
       correlation_id
FROM notification_scheduler
ORDER BY id;

-- name: list_jobs
-- What an ensure compares, what a first generation freezes, and whether the data is there.
SELECT
  id, tenant_id, row_key, guid, event_type, payload_hash, template_version, recipients, payload IS NOT NULL AS has_data
FROM notification_job
ORDER BY id;

-- name: list_transitions
-- Those that were written since the last look; they are never changed.
SELECT rowid, outgoing_id, version, from_status, to_status, at, actor, reason
FROM transition
WHERE rowid > :seen
ORDER BY rowid;

-- name: list_inbox
-- Who has which job in the inbox.
SELECT tenant_id, job_row_key, recipient_id_hash
FROM user_message;

-- name: list_recipient_jobs
-- Who is noted to have which job.
SELECT job_id, recipient_id_hash
FROM recipient_job;

-- name: list_attempts
-- Every call that the store knows of, with what it believes to have come of it.
SELECT outgoing_id, attempt, status, claim_token, provider_message_id
FROM delivery_attempt
ORDER BY outgoing_id, attempt;

-- name: list_receipts
-- Every receipt that was taken in.
SELECT tenant_id, account, event_id, status, message_id, recipient_key_hash, provider_message_id, applied_at
FROM webhook_event;

-- name: list_cases
-- What a person is asked to look at.
SELECT case_id, kind, record, record_key, seen_count
FROM support_case;

-- name: list_occurrences
-- What falls due, with all that says who may take it.
SELECT id, tenant_id, scheduler_key, status, version, scheduled_at, lease_until, retry_count, next_retry_at,
       run_now_at, on_support_hold, canceled_by, failure_reason, end_reason, setting, source_type, source, input_hash
FROM automation_scheduler
ORDER BY id;

-- name: list_thresholds
-- The last truth of every threshold.
SELECT setting, source_type, source, metric, scope, met, edge_no
FROM threshold_state;

-- name: list_open_events
-- Events that are not handled yet, and from when on they can be.
SELECT status, due_at
FROM entity_event
WHERE status IN ('Ready', 'Processing');

-- name: count_unplanned
-- Settings whose sources are still to be planned anew.
SELECT count(*)
FROM reminder_setting
WHERE planned_version < version;

-- What was asked for: jobs, their schedulers, and the guards that keep a repeated request from making a second job.

CREATE TABLE automation_scheduler (
  id                integer PRIMARY KEY AUTOINCREMENT,
  tenant_id         text NOT NULL,
  scheduler_key     text NOT NULL CHECK (length(CAST(scheduler_key AS blob)) BETWEEN 1 AND 512),
  automation_type   text NOT NULL,
  trigger_type      text NOT NULL,
  setting           text NOT NULL,
  source_type       text NOT NULL,
  source            text NOT NULL,
  trigger_key       text NOT NULL,
  target_date       text,
  offset_days       integer,
  metric            text,
  threshold_value   text,
  firing_policy     text,
  scope             text,
  business_unit     text,
  primary_entity    text NOT NULL,
  notification_type text NOT NULL,
  input_hash        text NOT NULL,
  scheduled_at      integer NOT NULL,
  local_date        text,
  local_time        text,
  tz_id             text,
  tzdata_version    text,
  status            text NOT NULL CHECK (status IN (
    'Pending', 'Processing', 'Completed', 'Failed', 'Deactivated', 'Canceled')),
  version           integer NOT NULL DEFAULT 1,
  lease_until       integer,
  retry_count       integer NOT NULL DEFAULT 0,
  next_retry_at     integer,
  failure_reason    text,
  on_support_hold   integer NOT NULL DEFAULT 0 CHECK (on_support_hold IN (0, 1)),
  canceled_by       text,
  dispatch_result   text CHECK (length(CAST(dispatch_result AS blob)) <= 4096),
  trace_blob        text,
  key_version       integer NOT NULL,
  correlation_id    text NOT NULL,
  traceparent       text,
  created_at        integer NOT NULL,
  UNIQUE (tenant_id, scheduler_key),
  CHECK ((lease_until IS NOT NULL) = (status = 'Processing')),
  CHECK ((canceled_by IS NOT NULL) = (status = 'Canceled')),
  CHECK (on_support_hold = 0 OR status = 'Pending')
) STRICT;
CREATE INDEX automation_scheduler_due ON automation_scheduler (scheduled_at, id)
  WHERE status = 'Pending' AND on_support_hold = 0;
CREATE INDEX automation_scheduler_source ON automation_scheduler (tenant_id, source_type, source, setting);

CREATE TABLE automation_job (
  id                integer PRIMARY KEY AUTOINCREMENT,
  tenant_id         text NOT NULL,
  partition_key     text NOT NULL CHECK (length(CAST(partition_key AS blob)) BETWEEN 1 AND 512),
  row_key           text NOT NULL CHECK (length(CAST(row_key AS blob)) BETWEEN 1 AND 512),
  automation_type   text NOT NULL,
  notification_type text NOT NULL,
  input_hash        text NOT NULL,
  key_version       integer NOT NULL,
  correlation_id    text NOT NULL,
  traceparent       text,
  created_at        integer NOT NULL,
  UNIQUE (tenant_id, partition_key, row_key)
) STRICT;

-- message_id: what a direct send to one recipient is answered with, before any outgoing row has it.
CREATE TABLE notification_job (
  id                     integer PRIMARY KEY AUTOINCREMENT,
  tenant_id              text NOT NULL,
  partition_key          text NOT NULL CHECK (length(CAST(partition_key AS blob)) BETWEEN 1 AND 512),
  row_key                text NOT NULL CHECK (length(CAST(row_key AS blob)) BETWEEN 1 AND 512),
  guid                   text NOT NULL,
  message_id             text,
  event_type             text NOT NULL,
  operation              text NOT NULL,
  source_type            text,
  source                 text,
  automation_key         text,
  run_key                text,
  template_key           text,
  asked_template_version integer,
  template_version       integer,
  payload_hash           text NOT NULL,
  payload                blob,
  recipients             text,
  source_at              integer NOT NULL,
  bucket                 integer NOT NULL CHECK (bucket BETWEEN 197001 AND 999912),
  key_version            integer NOT NULL,
  actor                  text,
  correlation_id         text NOT NULL,
  traceparent            text,
  created_at             integer NOT NULL,
  UNIQUE (tenant_id, row_key),
  UNIQUE (tenant_id, guid)
) STRICT;
CREATE INDEX notification_job_history ON notification_job (tenant_id, partition_key, row_key);
CREATE INDEX notification_job_message ON notification_job (tenant_id, message_id) WHERE message_id IS NOT NULL;

-- scheduled_at: when the first stage passed it on. moved_at: when it last changed its state.
CREATE TABLE notification_scheduler (
  id             integer PRIMARY KEY AUTOINCREMENT,
  tenant_id      text NOT NULL,
  artifact_type  text NOT NULL,
  artifact_pk    text NOT NULL CHECK (length(CAST(artifact_pk AS blob)) BETWEEN 1 AND 512),
  artifact_rk    text NOT NULL CHECK (length(CAST(artifact_rk AS blob)) BETWEEN 1 AND 512),
  event_type     text NOT NULL,
  lane           text NOT NULL,
  stage          text NOT NULL,
  status         text NOT NULL CHECK (status IN ('Ready', 'Processing', 'Done', 'Skipped', 'Failed', 'Canceled')),
  version        integer NOT NULL DEFAULT 1,
  due_at         integer,
  lease_until    integer,
  scheduled_at   integer,
  moved_at       integer,
  retry_count    integer NOT NULL DEFAULT 0,
  rescue_count   integer NOT NULL DEFAULT 0,
  reason         text,
  diagnostics    text CHECK (length(CAST(diagnostics AS blob)) <= 4096),
  correlation_id text NOT NULL,
  traceparent    text,
  created_at     integer NOT NULL,
  UNIQUE (tenant_id, artifact_type, artifact_pk, artifact_rk, event_type),
  CHECK ((due_at IS NOT NULL) = (status = 'Ready')),
  CHECK ((lease_until IS NOT NULL) = (status = 'Processing'))
) STRICT;
CREATE INDEX notification_scheduler_due ON notification_scheduler (stage, lane, due_at, id) WHERE due_at IS NOT NULL;
CREATE INDEX notification_scheduler_lease ON notification_scheduler (lease_until) WHERE lease_until IS NOT NULL;

CREATE TABLE messaging_job (
  id                     integer PRIMARY KEY AUTOINCREMENT,
  tenant_id              text NOT NULL,
  guid                   text NOT NULL,
  kind                   text NOT NULL,
  source                 text NOT NULL,
  run_key                text NOT NULL,
  template_key           text,
  asked_template_version integer,
  template_version       integer,
  content_hash           text NOT NULL,
  source_at              integer NOT NULL,
  bucket                 integer NOT NULL CHECK (bucket BETWEEN 197001 AND 999912),
  key_version            integer NOT NULL,
  correlation_id         text NOT NULL,
  traceparent            text,
  created_at             integer NOT NULL,
  UNIQUE (tenant_id, guid)
) STRICT;

CREATE TABLE idempotency_guard (
  tenant_id         text NOT NULL,
  operation         text NOT NULL,
  key_hash          text NOT NULL CHECK (length(key_hash) = 32 AND key_hash NOT GLOB '*[^0-9a-f]*'),
  payload_hash      text NOT NULL,
  job_partition_key text NOT NULL,
  job_row_key       text NOT NULL,
  source_at         integer NOT NULL,
  retired_at        integer,
  created_at        integer NOT NULL,
  PRIMARY KEY (tenant_id, operation, key_hash)
) STRICT;

-- What was asked for: jobs, their schedulers, and the guards that keep a repeated request from making a second job.

CREATE TABLE automation_scheduler (
  id                bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  tenant_id         text NOT NULL,
  scheduler_key     text NOT NULL CHECK (octet_length(scheduler_key) BETWEEN 1 AND 512),
  automation_type   text NOT NULL,
  trigger_type      text NOT NULL,
  setting           text NOT NULL,
  source_type       text NOT NULL,
  source            text NOT NULL,
  trigger_key       text NOT NULL,
  target_date       date,
  offset_days       integer,
  metric            text,
  threshold_value   text,
  firing_policy     text,
  scope             text,
  business_unit     text,
  primary_entity    text NOT NULL,
  notification_type text NOT NULL,
  input_hash        text NOT NULL,
  scheduled_at      timestamptz NOT NULL,
  local_date        date,
  local_time        text,
  tz_id             text,
  tzdata_version    text,
  status            text NOT NULL CHECK (status IN (
    'Pending', 'Processing', 'Completed', 'Failed', 'Deactivated', 'Canceled')),
  version           integer NOT NULL DEFAULT 1,
  lease_until       timestamptz,
  retry_count       integer NOT NULL DEFAULT 0,
  next_retry_at     timestamptz,
  failure_reason    text,
  on_support_hold   boolean NOT NULL DEFAULT false,
  canceled_by       text,
  dispatch_result   text CHECK (octet_length(dispatch_result) <= 4096),
  trace_blob        text,
  key_version       integer NOT NULL,
  correlation_id    text NOT NULL,
  traceparent       text,
  created_at        timestamptz NOT NULL DEFAULT now(),
  UNIQUE (tenant_id, scheduler_key),
  CHECK ((lease_until IS NOT NULL) = (status = 'Processing')),
  CHECK ((canceled_by IS NOT NULL) = (status = 'Canceled')),
  CHECK (NOT on_support_hold OR status = 'Pending')
);
CREATE INDEX automation_scheduler_due ON automation_scheduler (scheduled_at, id)
  WHERE status = 'Pending' AND NOT on_support_hold;
CREATE INDEX automation_scheduler_source ON automation_scheduler (tenant_id, source_type, source, setting);

CREATE TABLE automation_job (
  id                bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  tenant_id         text NOT NULL,
  partition_key     text NOT NULL CHECK (octet_length(partition_key) BETWEEN 1 AND 512),
  row_key           text NOT NULL CHECK (octet_length(row_key) BETWEEN 1 AND 512),
  automation_type   text NOT NULL,
  notification_type text NOT NULL,
  input_hash        text NOT NULL,
  key_version       integer NOT NULL,
  correlation_id    text NOT NULL,
  traceparent       text,
  created_at        timestamptz NOT NULL DEFAULT now(),
  UNIQUE (tenant_id, partition_key, row_key)
);

-- message_id: what a direct send to one recipient is answered with, before any outgoing row has it.
CREATE TABLE notification_job (
  id                     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  tenant_id              text NOT NULL,
  partition_key          text NOT NULL CHECK (octet_length(partition_key) BETWEEN 1 AND 512),
  row_key                text NOT NULL CHECK (octet_length(row_key) BETWEEN 1 AND 512),
  guid                   uuid NOT NULL,
  message_id             uuid,
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
  payload                bytea,
  recipients             text,
  source_at              timestamptz NOT NULL,
  bucket                 integer NOT NULL CHECK (bucket BETWEEN 197001 AND 999912),
  key_version            integer NOT NULL,
  actor                  text,
  correlation_id         text NOT NULL,
  traceparent            text,
  created_at             timestamptz NOT NULL DEFAULT now(),
  UNIQUE (tenant_id, row_key),
  UNIQUE (tenant_id, guid)
);
CREATE INDEX notification_job_history ON notification_job (tenant_id, partition_key, row_key COLLATE "C");
CREATE INDEX notification_job_message ON notification_job (tenant_id, message_id) WHERE message_id IS NOT NULL;

-- scheduled_at: when the first stage passed it on. moved_at: when it last changed its state.
CREATE TABLE notification_scheduler (
  id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  tenant_id      text NOT NULL,
  artifact_type  text NOT NULL,
  artifact_pk    text NOT NULL CHECK (octet_length(artifact_pk) BETWEEN 1 AND 512),
  artifact_rk    text NOT NULL CHECK (octet_length(artifact_rk) BETWEEN 1 AND 512),
  event_type     text NOT NULL,
  lane           text NOT NULL,
  stage          text NOT NULL,
  status         text NOT NULL CHECK (status IN ('Ready', 'Processing', 'Done', 'Skipped', 'Failed', 'Canceled')),
  version        integer NOT NULL DEFAULT 1,
  due_at         timestamptz,
  lease_until    timestamptz,
  scheduled_at   timestamptz,
  moved_at       timestamptz,
  retry_count    integer NOT NULL DEFAULT 0,
  rescue_count   integer NOT NULL DEFAULT 0,
  reason         text,
  diagnostics    text CHECK (octet_length(diagnostics) <= 4096),
  correlation_id text NOT NULL,
  traceparent    text,
  created_at     timestamptz NOT NULL DEFAULT now(),
  UNIQUE (tenant_id, artifact_type, artifact_pk, artifact_rk, event_type),
  CHECK ((due_at IS NOT NULL) = (status = 'Ready')),
  CHECK ((lease_until IS NOT NULL) = (status = 'Processing'))
);
CREATE INDEX notification_scheduler_due ON notification_scheduler (stage, lane, due_at, id) WHERE due_at IS NOT NULL;
CREATE INDEX notification_scheduler_lease ON notification_scheduler (lease_until) WHERE lease_until IS NOT NULL;

CREATE TABLE messaging_job (
  id                     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  tenant_id              text NOT NULL,
  guid                   uuid NOT NULL,
  kind                   text NOT NULL,
  source                 text NOT NULL,
  run_key                text NOT NULL,
  template_key           text,
  asked_template_version integer,
  template_version       integer,
  content_hash           text NOT NULL,
  source_at              timestamptz NOT NULL,
  bucket                 integer NOT NULL CHECK (bucket BETWEEN 197001 AND 999912),
  key_version            integer NOT NULL,
  correlation_id         text NOT NULL,
  traceparent            text,
  created_at             timestamptz NOT NULL DEFAULT now(),
  UNIQUE (tenant_id, guid)
);

CREATE TABLE idempotency_guard (
  tenant_id         text NOT NULL,
  operation         text NOT NULL,
  key_hash          text NOT NULL CHECK (key_hash ~ '^[0-9a-f]{32}$'),
  payload_hash      text NOT NULL,
  job_partition_key text NOT NULL,
  job_row_key       text NOT NULL,
  source_at         timestamptz NOT NULL,
  retired_at        timestamptz,
  created_at        timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, operation, key_hash)
);

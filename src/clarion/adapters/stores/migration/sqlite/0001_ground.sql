-- The ground: every record that an Ensure contract makes, and what their keys stand on.
-- Every unique key that a caller can influence starts with tenant_id; rows that retention will drop carry their month
-- `bucket` in every key, as on PostgreSQL.
-- Instants are microseconds since 1970 UTC, taken from the registered function clarion_now(); guids and dates are text.
-- Lengths are bounded here too, so that no path around the program can store what the program would refuse.
-- AUTOINCREMENT, so that the id of a deleted row is never given to another one: rows and holds refer to rows by id.

CREATE TABLE schema_info (
  only_row    integer PRIMARY KEY DEFAULT 1 CHECK (only_row = 1),
  min_program text NOT NULL
) STRICT;
INSERT INTO schema_info (min_program) VALUES ('0.1.0');

-- The host's clock is the store's here. The latest instant handed out is kept, so that a wall clock set back between
-- two starts cannot give a lease away early (I-37).
CREATE TABLE store_clock (
  only_row   integer PRIMARY KEY DEFAULT 1 CHECK (only_row = 1),
  high_water integer NOT NULL
) STRICT;
INSERT INTO store_clock (high_water) VALUES (0);

CREATE TABLE tenant (
  tenant_id  text PRIMARY KEY CHECK (length(tenant_id) BETWEEN 1 AND 63 AND tenant_id NOT GLOB '*[^a-z0-9-]*' AND tenant_id NOT GLOB '-*'),
  created_at integer NOT NULL
) STRICT;

-- Wrapped by a master key that lives outside the database: a dump alone opens nothing.
CREATE TABLE tenant_key (
  tenant_id  text NOT NULL REFERENCES tenant,
  purpose    text NOT NULL CHECK (purpose IN ('identity', 'index', 'data')),
  serial     integer NOT NULL CHECK (serial >= 1),
  wrapped    blob NOT NULL,
  created_at integer NOT NULL,
  PRIMARY KEY (tenant_id, purpose, serial)
) STRICT;

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
  status            text NOT NULL CHECK (status IN ('Pending', 'Processing', 'Completed', 'Failed', 'Deactivated', 'Canceled')),
  version           integer NOT NULL DEFAULT 1,
  lease_until       integer,
  retry_count       integer NOT NULL DEFAULT 0,
  next_retry_at     integer,
  failure_reason    text,
  on_support_hold   integer NOT NULL DEFAULT 0 CHECK (on_support_hold IN (0, 1)),
  canceled_by       text CHECK (canceled_by IN ('person', 'system')),
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

CREATE TABLE notification_job (
  id                     integer PRIMARY KEY AUTOINCREMENT,
  tenant_id              text NOT NULL,
  partition_key          text NOT NULL CHECK (length(CAST(partition_key AS blob)) BETWEEN 1 AND 512),
  row_key                text NOT NULL CHECK (length(CAST(row_key AS blob)) BETWEEN 1 AND 512),
  guid                   text NOT NULL,
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

CREATE TABLE notification_scheduler (
  id             integer PRIMARY KEY AUTOINCREMENT,
  tenant_id      text NOT NULL,
  artifact_type  text NOT NULL CHECK (artifact_type IN ('NotificationJob', 'MessagingJob')),
  artifact_pk    text NOT NULL CHECK (length(CAST(artifact_pk AS blob)) BETWEEN 1 AND 512),
  artifact_rk    text NOT NULL CHECK (length(CAST(artifact_rk AS blob)) BETWEEN 1 AND 512),
  event_type     text NOT NULL,
  lane           text NOT NULL CHECK (lane IN ('critical', 'high', 'normal', 'bulk')),
  stage          text NOT NULL CHECK (stage IN ('schedule', 'generate')),
  status         text NOT NULL CHECK (status IN ('Ready', 'Processing', 'Done', 'Skipped', 'Failed', 'Canceled')),
  version        integer NOT NULL DEFAULT 1,
  due_at         integer,
  lease_until    integer,
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

CREATE TABLE messaging_job (
  id                     integer PRIMARY KEY AUTOINCREMENT,
  tenant_id              text NOT NULL,
  guid                   text NOT NULL,
  kind                   text NOT NULL CHECK (kind IN ('Campaign', 'Report', 'Wave')),
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

CREATE TABLE address_version (
  id                integer PRIMARY KEY AUTOINCREMENT,
  tenant_id         text NOT NULL,
  recipient_id_hash text NOT NULL CHECK (length(recipient_id_hash) = 32 AND recipient_id_hash NOT GLOB '*[^0-9a-f]*'),
  channel           text NOT NULL CHECK (channel IN ('email', 'sms', 'push', 'chat')),
  serial            integer NOT NULL CHECK (serial >= 1),
  key_hash          text NOT NULL CHECK (length(key_hash) = 32 AND key_hash NOT GLOB '*[^0-9a-f]*'),
  destination_index text NOT NULL CHECK (length(destination_index) = 32 AND destination_index NOT GLOB '*[^0-9a-f]*'),
  ciphertext        blob NOT NULL,
  correlation_id    text NOT NULL,
  created_at        integer NOT NULL,
  UNIQUE (tenant_id, recipient_id_hash, channel, serial)
) STRICT;

CREATE TABLE user_message (
  id                integer PRIMARY KEY AUTOINCREMENT,
  tenant_id         text NOT NULL,
  bucket            integer NOT NULL,
  partition_key     text NOT NULL CHECK (length(CAST(partition_key AS blob)) BETWEEN 1 AND 512),
  row_key           text NOT NULL CHECK (length(CAST(row_key AS blob)) BETWEEN 1 AND 512),
  message_id        text NOT NULL,
  recipient_id_hash text NOT NULL CHECK (length(recipient_id_hash) = 32 AND recipient_id_hash NOT GLOB '*[^0-9a-f]*'),
  job_row_key       text NOT NULL,
  event_type        text NOT NULL,
  content           blob,
  correlation_id    text NOT NULL,
  traceparent       text,
  created_at        integer NOT NULL,
  UNIQUE (tenant_id, bucket, partition_key, row_key)
) STRICT;

-- What claiming shares out: few and small, never one per recipient. source is the campaign, '' for none;
-- account is the provider account that doubtful rows are pinned to, '' for none.
CREATE TABLE flow (
  id        integer PRIMARY KEY AUTOINCREMENT,
  tenant_id text NOT NULL,
  lane      text NOT NULL CHECK (lane IN ('critical', 'high', 'normal', 'bulk')),
  route     text NOT NULL,
  source    text NOT NULL DEFAULT '',
  account   text NOT NULL DEFAULT '',
  UNIQUE (tenant_id, lane, route, source, account)
) STRICT;

-- address_id and flow_id have no foreign keys: rows are made only by INSERT … SELECT over those tables,
-- and neither table's rows are ever updated in their keys.
CREATE TABLE outgoing_message (
  id                  integer PRIMARY KEY AUTOINCREMENT,
  tenant_id           text NOT NULL,
  bucket              integer NOT NULL,
  pk                  text NOT NULL CHECK (length(CAST(pk AS blob)) BETWEEN 1 AND 512),
  rk                  text NOT NULL CHECK (length(CAST(rk AS blob)) BETWEEN 1 AND 512),
  message_id          text NOT NULL,
  address_id          integer NOT NULL,
  channel             text NOT NULL CHECK (channel IN ('email', 'sms', 'push', 'chat')),
  attempt_no          integer CHECK (attempt_no >= 2),
  flow_id             integer NOT NULL,
  order_key           text,
  status              text NOT NULL DEFAULT 'Created' CHECK (status IN (
    'Created', 'RetryReady', 'Sending', 'SentToProvider', 'Blocked', 'Delivered', 'Opened', 'Bounced', 'Complained',
    'FailedFinal', 'Uncertain', 'Canceled', 'Expired', 'Suppressed', 'NotSupported')),
  version             integer NOT NULL DEFAULT 1,
  due_at              integer,
  lease_until         integer,
  expires_at          integer,
  cancel_at           integer,
  claim_token         text,
  account             text,
  attempts            integer NOT NULL DEFAULT 0,
  units               integer NOT NULL DEFAULT 1,
  replay_authorised   integer NOT NULL DEFAULT 0 CHECK (replay_authorised IN (0, 1)),
  first_unproven_at   integer,
  provider_message_id text,
  content_hash        text,
  reason              text,
  correlation_id      text NOT NULL,
  traceparent         text,
  created_at          integer NOT NULL,
  UNIQUE (tenant_id, bucket, pk, rk),
  CHECK ((due_at IS NOT NULL) = (status IN ('Created', 'RetryReady'))),
  CHECK ((lease_until IS NOT NULL) = (status IN ('Sending')))
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

CREATE TABLE support_case (
  tenant_id      text NOT NULL,
  case_id        text NOT NULL,
  kind           text NOT NULL CHECK (kind IN ('Conflict', 'Hold', 'Uncertain', 'DeadLetter', 'Misconfiguration')),
  status         text NOT NULL CHECK (status IN ('Open', 'Resolved')),
  record         text NOT NULL,
  record_key     text NOT NULL,
  details        text NOT NULL CHECK (length(CAST(details AS blob)) <= 4096),
  seen_count     integer NOT NULL DEFAULT 1,
  correlation_id text NOT NULL,
  first_seen_at  integer NOT NULL,
  last_seen_at   integer NOT NULL,
  PRIMARY KEY (tenant_id, case_id)
) STRICT;

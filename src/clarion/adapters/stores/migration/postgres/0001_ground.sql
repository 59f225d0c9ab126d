-- The ground: every record that an Ensure contract makes, and what their keys stand on.
-- Every unique key that a caller can influence starts with tenant_id; rows that retention will drop carry their month
-- `bucket` in every key, so that a later step can attach this table as a partition without rewriting it.
-- Lengths are bounded here too, so that no path around the program can store what the program would refuse.

CREATE TABLE schema_info (
  only_row    boolean PRIMARY KEY DEFAULT true CHECK (only_row),
  min_program text NOT NULL
);
INSERT INTO schema_info (min_program) VALUES ('0.1.0');

CREATE TABLE tenant (
  tenant_id  text PRIMARY KEY CHECK (tenant_id ~ '^[a-z0-9][a-z0-9-]{0,62}$'),
  created_at timestamptz NOT NULL DEFAULT now()
);

-- Wrapped by a master key that lives outside the database: a dump alone opens nothing.
CREATE TABLE tenant_key (
  tenant_id  text NOT NULL REFERENCES tenant,
  purpose    text NOT NULL CHECK (purpose IN ('identity', 'index', 'data')),
  serial     integer NOT NULL CHECK (serial >= 1),
  wrapped    bytea NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, purpose, serial)
);

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
  status            text NOT NULL CHECK (status IN ('Pending', 'Processing', 'Completed', 'Failed', 'Deactivated', 'Canceled')),
  version           integer NOT NULL DEFAULT 1,
  lease_until       timestamptz,
  retry_count       integer NOT NULL DEFAULT 0,
  next_retry_at     timestamptz,
  failure_reason    text,
  on_support_hold   boolean NOT NULL DEFAULT false,
  canceled_by       text CHECK (canceled_by IN ('person', 'system')),
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

CREATE TABLE notification_job (
  id                     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  tenant_id              text NOT NULL,
  partition_key          text NOT NULL CHECK (octet_length(partition_key) BETWEEN 1 AND 512),
  row_key                text NOT NULL CHECK (octet_length(row_key) BETWEEN 1 AND 512),
  guid                   uuid NOT NULL,
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

CREATE TABLE notification_scheduler (
  id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  tenant_id      text NOT NULL,
  artifact_type  text NOT NULL CHECK (artifact_type IN ('NotificationJob', 'MessagingJob')),
  artifact_pk    text NOT NULL CHECK (octet_length(artifact_pk) BETWEEN 1 AND 512),
  artifact_rk    text NOT NULL CHECK (octet_length(artifact_rk) BETWEEN 1 AND 512),
  event_type     text NOT NULL,
  lane           text NOT NULL CHECK (lane IN ('critical', 'high', 'normal', 'bulk')),
  stage          text NOT NULL CHECK (stage IN ('schedule', 'generate')),
  status         text NOT NULL CHECK (status IN ('Ready', 'Processing', 'Done', 'Skipped', 'Failed', 'Canceled')),
  version        integer NOT NULL DEFAULT 1,
  due_at         timestamptz,
  lease_until    timestamptz,
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

CREATE TABLE messaging_job (
  id                     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  tenant_id              text NOT NULL,
  guid                   uuid NOT NULL,
  kind                   text NOT NULL CHECK (kind IN ('Campaign', 'Report', 'Wave')),
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

CREATE TABLE address_version (
  id                bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  tenant_id         text NOT NULL,
  recipient_id_hash text NOT NULL CHECK (recipient_id_hash ~ '^[0-9a-f]{32}$'),
  channel           text NOT NULL CHECK (channel IN ('email', 'sms', 'push', 'chat')),
  serial            integer NOT NULL CHECK (serial >= 1),
  key_hash          text NOT NULL CHECK (key_hash ~ '^[0-9a-f]{32}$'),
  destination_index text NOT NULL CHECK (destination_index ~ '^[0-9a-f]{32}$'),
  ciphertext        bytea NOT NULL,
  correlation_id    text NOT NULL,
  created_at        timestamptz NOT NULL DEFAULT now(),
  UNIQUE (tenant_id, recipient_id_hash, channel, serial)
);

CREATE TABLE user_message (
  id                bigint GENERATED ALWAYS AS IDENTITY,
  tenant_id         text NOT NULL,
  bucket            integer NOT NULL,
  partition_key     text NOT NULL CHECK (octet_length(partition_key) BETWEEN 1 AND 512),
  row_key           text NOT NULL CHECK (octet_length(row_key) BETWEEN 1 AND 512),
  message_id        uuid NOT NULL,
  recipient_id_hash text NOT NULL CHECK (recipient_id_hash ~ '^[0-9a-f]{32}$'),
  job_row_key       text NOT NULL,
  event_type        text NOT NULL,
  content           bytea,
  correlation_id    text NOT NULL,
  traceparent       text,
  created_at        timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (bucket, id),
  UNIQUE (tenant_id, bucket, partition_key, row_key)
);

-- What claiming shares out: few and small, never one per recipient. source is the campaign, '' for none;
-- account is the provider account that doubtful rows are pinned to, '' for none.
CREATE TABLE flow (
  id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  tenant_id text NOT NULL,
  lane      text NOT NULL CHECK (lane IN ('critical', 'high', 'normal', 'bulk')),
  route     text NOT NULL,
  source    text NOT NULL DEFAULT '',
  account   text NOT NULL DEFAULT '',
  UNIQUE (tenant_id, lane, route, source, account)
);

-- What an outgoing message is found by, made with it and never changed. Apart from it, because a change of a row writes
-- every index of its table anew: keys in no order would cost each claim and each result two pages that nobody has in
-- memory. SQLite writes only what has changed and has both keys on the message.
CREATE TABLE outgoing_key (
  tenant_id   text NOT NULL,
  bucket      integer NOT NULL,
  pk          text NOT NULL,
  rk          text NOT NULL,
  message_id  uuid NOT NULL,
  outgoing_id bigint NOT NULL,
  PRIMARY KEY (tenant_id, bucket, pk, rk)
);

-- address_id and flow_id have no foreign keys: rows are made only by INSERT … SELECT over those tables,
-- and neither table's rows are ever updated in their keys. Every row has its key in outgoing_key.
CREATE TABLE outgoing_message (
  id                  bigint GENERATED ALWAYS AS IDENTITY,
  tenant_id           text NOT NULL,
  bucket              integer NOT NULL,
  pk                  text NOT NULL CHECK (octet_length(pk) BETWEEN 1 AND 512),
  rk                  text NOT NULL CHECK (octet_length(rk) BETWEEN 1 AND 512),
  message_id          uuid NOT NULL,
  address_id          bigint NOT NULL,
  channel             text NOT NULL CHECK (channel IN ('email', 'sms', 'push', 'chat')),
  attempt_no          smallint CHECK (attempt_no >= 2),
  flow_id             bigint NOT NULL,
  order_key           text,
  status              text NOT NULL DEFAULT 'Created' CHECK (status IN (
    'Created', 'RetryReady', 'Sending', 'SentToProvider', 'Blocked', 'Delivered', 'Opened', 'Bounced', 'Complained',
    'FailedFinal', 'Uncertain', 'Canceled', 'Expired', 'Suppressed', 'NotSupported')),
  version             integer NOT NULL DEFAULT 1,
  due_at              timestamptz,
  lease_until         timestamptz,
  expires_at          timestamptz,
  cancel_at           timestamptz,
  claim_token         uuid,
  account             text,
  attempts            smallint NOT NULL DEFAULT 0,
  units               smallint NOT NULL DEFAULT 1,
  replay_authorised   boolean NOT NULL DEFAULT false,
  first_unproven_at   timestamptz,
  provider_message_id text,
  content_hash        text,
  reason              text,
  correlation_id      text NOT NULL,
  traceparent         text,
  created_at          timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (bucket, id),
  CHECK ((due_at IS NOT NULL) = (status IN ('Created', 'RetryReady'))),
  CHECK ((lease_until IS NOT NULL) = (status IN ('Sending')))
) WITH (fillfactor = 70);

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

CREATE TABLE support_case (
  tenant_id      text NOT NULL,
  case_id        uuid NOT NULL,
  kind           text NOT NULL CHECK (kind IN ('Conflict', 'Hold', 'Uncertain', 'DeadLetter', 'Misconfiguration')),
  status         text NOT NULL CHECK (status IN ('Open', 'Resolved')),
  record         text NOT NULL,
  record_key     text NOT NULL,
  details        text NOT NULL CHECK (octet_length(details) <= 4096),
  seen_count     integer NOT NULL DEFAULT 1,
  correlation_id text NOT NULL,
  first_seen_at  timestamptz NOT NULL DEFAULT now(),
  last_seen_at   timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, case_id)
);

-- The pipeline: what claiming, sending, tracking and asking stand on.

-- The gate of a source (a campaign): pausing or canceling a million rows is one update of one row here, which waits for
-- the claims that hold it and lets none begin after it. Direct sends have no source and no gate.
CREATE TABLE source (
  tenant_id text NOT NULL,
  source    text NOT NULL CHECK (octet_length(source) BETWEEN 1 AND 512),
  gate      text NOT NULL DEFAULT 'Open' CHECK (gate IN ('Open', 'Paused', 'Canceled')),
  PRIMARY KEY (tenant_id, source)
);

-- Totals of a source's flows, changed by the statement that changes the rows; '' where no reason is told apart.
CREATE TABLE flow_count (
  tenant_id    text NOT NULL,
  flow_id      bigint NOT NULL,
  status       text NOT NULL,
  reason_class text NOT NULL DEFAULT '',
  n            bigint NOT NULL,
  PRIMARY KEY (tenant_id, flow_id, status, reason_class)
) WITH (fillfactor = 50);

-- in_line: its due time was moved because an earlier message of its order key comes first, not by anybody's wish; so
-- whoever closes that one may make this one due. cancel_actor: who set cancel_at, for the line that the claim writes.
-- reason_class: the few reasons that totals tell apart. has_source: as its flow, whose totals are kept, for a statement
-- that finds the row in a flow which it cannot see yet.
ALTER TABLE outgoing_message
  ADD COLUMN doubt_policy text NOT NULL DEFAULT 'prefer_loss' CHECK (doubt_policy IN ('prefer_loss', 'prefer_duplicate')),
  ADD COLUMN settle_at    timestamptz,
  ADD COLUMN not_called   smallint NOT NULL DEFAULT 0,
  ADD COLUMN replays      smallint NOT NULL DEFAULT 0,
  ADD COLUMN in_line      boolean NOT NULL DEFAULT false,
  ADD COLUMN cancel_actor text,
  ADD COLUMN has_source   boolean NOT NULL DEFAULT false,
  ADD COLUMN reason_class text NOT NULL DEFAULT '' CHECK (reason_class IN ('', 'throttled', 'recipient-not-found'));

-- message_id: the one that a direct send to one recipient is answered with, before any row has it.
ALTER TABLE notification_job ADD COLUMN message_id uuid;

-- scheduled_at: when the first stage passed it on. moved_at: when it last changed its state.
ALTER TABLE notification_scheduler
  ADD COLUMN scheduled_at timestamptz,
  ADD COLUMN moved_at     timestamptz;

ALTER TABLE support_case
  ADD COLUMN resolved_at timestamptz,
  ADD COLUMN resolved_by text,
  ADD COLUMN resolution  text CHECK (octet_length(resolution) <= 4096);

-- One line for every change of an outgoing row's state, written by the statement that makes the change (I-42).
CREATE TABLE transition (
  tenant_id   text NOT NULL,
  bucket      integer NOT NULL,
  outgoing_id bigint NOT NULL,
  version     integer NOT NULL,
  from_status text NOT NULL,
  to_status   text NOT NULL,
  at          timestamptz NOT NULL DEFAULT now(),
  actor       text NOT NULL,
  reason      text,
  PRIMARY KEY (bucket, outgoing_id, version)
);

CREATE TABLE delivery_attempt (
  tenant_id           text NOT NULL,
  bucket              integer NOT NULL,
  outgoing_id         bigint NOT NULL,
  attempt             smallint NOT NULL CHECK (attempt >= 1),
  claim_token         uuid NOT NULL,
  account             text NOT NULL,
  status              text NOT NULL CHECK (status IN ('Accepted', 'Refused', 'Deferred', 'Misconfigured', 'Unknown')),
  provider_message_id text CHECK (octet_length(provider_message_id) <= 512),
  reason              text,
  content_hash        text,
  latency_ms          integer,
  at                  timestamptz NOT NULL DEFAULT now(),
  correlation_id      text NOT NULL,
  traceparent         text,
  PRIMARY KEY (bucket, outgoing_id, attempt)
);

-- Every provider event as received, late and repeated ones too; applied in batches by track. One whose row is not known
-- yet waits, and goes to the end of the line (look_at), so that it keeps nobody behind it waiting.
CREATE TABLE webhook_event (
  tenant_id           text NOT NULL,
  account             text NOT NULL,
  event_id            text NOT NULL CHECK (octet_length(event_id) BETWEEN 1 AND 512),
  status              text NOT NULL,
  message_id          uuid,
  recipient_key_hash  text,
  provider_message_id text,
  happened_at         timestamptz NOT NULL,
  raw                 text NOT NULL CHECK (octet_length(raw) <= 65536),
  received_at         timestamptz NOT NULL DEFAULT now(),
  look_at             timestamptz NOT NULL DEFAULT now(),
  applied_at          timestamptz,
  PRIMARY KEY (tenant_id, account, event_id)
);

CREATE TABLE person (
  tenant_id         text NOT NULL,
  recipient_id_hash text NOT NULL CHECK (recipient_id_hash ~ '^[0-9a-f]{32}$'),
  domain            text NOT NULL CHECK (domain IN ('user', 'employee')),
  person_id         text NOT NULL,
  profile           bytea NOT NULL,
  PRIMARY KEY (tenant_id, recipient_id_hash),
  UNIQUE (tenant_id, domain, person_id)
);

CREATE TABLE contact (
  tenant_id         text NOT NULL,
  recipient_id_hash text NOT NULL,
  channel           text NOT NULL CHECK (channel IN ('email', 'sms', 'push', 'chat')),
  address_id        bigint NOT NULL,
  PRIMARY KEY (tenant_id, recipient_id_hash, channel, address_id)
);

CREATE TABLE audience_group (
  tenant_id text NOT NULL,
  guid      uuid NOT NULL,
  name      text NOT NULL,
  PRIMARY KEY (tenant_id, guid)
);

CREATE TABLE group_member (
  tenant_id         text NOT NULL,
  group_guid        uuid NOT NULL,
  recipient_id_hash text NOT NULL,
  PRIMARY KEY (tenant_id, group_guid, recipient_id_hash)
);

-- A published template never changes; new content is a new version.
CREATE TABLE template (
  tenant_id    text NOT NULL,
  template_key text NOT NULL CHECK (octet_length(template_key) BETWEEN 1 AND 200),
  version      integer NOT NULL CHECK (version >= 1),
  content_hash text NOT NULL,
  bundle       text NOT NULL CHECK (octet_length(bundle) <= 1048576),
  created_at   timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, template_key, version)
);

CREATE TABLE type_setting (
  tenant_id  text NOT NULL,
  event_type text NOT NULL,
  enabled    boolean NOT NULL,
  changed_by text NOT NULL,
  changed_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, event_type)
);

-- Found by the random key id, which no caller chooses; the secret itself is never stored.
CREATE TABLE api_key (
  key_id      text PRIMARY KEY CHECK (octet_length(key_id) BETWEEN 8 AND 64),
  tenant_id   text NOT NULL,
  secret_hash text NOT NULL,
  actor       text NOT NULL,
  role        text NOT NULL CHECK (role IN ('viewer', 'author', 'sender', 'support', 'admin')),
  created_at  timestamptz NOT NULL DEFAULT now(),
  expires_at  timestamptz,
  revoked_at  timestamptz
);

-- Acts of people and support tools, each chained to the one before by its hash.
CREATE TABLE audit_log (
  tenant_id     text NOT NULL,
  seq           bigint NOT NULL,
  at            timestamptz NOT NULL DEFAULT now(),
  actor         text NOT NULL,
  act           text NOT NULL,
  subject       text NOT NULL,
  reason        text,
  details       text NOT NULL DEFAULT '{}' CHECK (octet_length(details) <= 4096),
  previous_hash text NOT NULL,
  hash          text NOT NULL,
  PRIMARY KEY (tenant_id, seq)
);

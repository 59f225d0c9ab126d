-- The pipeline: what claiming, sending, tracking and asking stand on.

-- The gate of a source (a campaign): pausing or canceling a million rows is one update of one row here, which waits for
-- the claims that hold it and lets none begin after it. Direct sends have no source and no gate.
CREATE TABLE source (
  tenant_id text NOT NULL,
  source    text NOT NULL CHECK (length(CAST(source AS blob)) BETWEEN 1 AND 512),
  gate      text NOT NULL DEFAULT 'Open' CHECK (gate IN ('Open', 'Paused', 'Canceled')),
  PRIMARY KEY (tenant_id, source)
) STRICT;

-- Totals of a source's flows, changed by the statement that changes the rows; '' where no reason is told apart.
CREATE TABLE flow_count (
  tenant_id    text NOT NULL,
  flow_id      integer NOT NULL,
  status       text NOT NULL,
  reason_class text NOT NULL DEFAULT '',
  n            integer NOT NULL,
  PRIMARY KEY (tenant_id, flow_id, status, reason_class)
) STRICT;

-- in_line: its due time was moved because an earlier message of its order key comes first, not by anybody's wish; so
-- whoever closes that one may make this one due. cancel_actor: who set cancel_at, for the line that the claim writes.
-- reason_class: the few reasons that totals tell apart. has_source: as its flow, whose totals are kept, for a statement
-- that finds the row in a flow which it cannot see yet.
ALTER TABLE outgoing_message ADD COLUMN doubt_policy text NOT NULL DEFAULT 'prefer_loss' CHECK (doubt_policy IN ('prefer_loss', 'prefer_duplicate'));
ALTER TABLE outgoing_message ADD COLUMN settle_at    integer;
ALTER TABLE outgoing_message ADD COLUMN not_called   integer NOT NULL DEFAULT 0;
ALTER TABLE outgoing_message ADD COLUMN replays      integer NOT NULL DEFAULT 0;
ALTER TABLE outgoing_message ADD COLUMN in_line      integer NOT NULL DEFAULT 0 CHECK (in_line IN (0, 1));
ALTER TABLE outgoing_message ADD COLUMN cancel_actor text;
ALTER TABLE outgoing_message ADD COLUMN has_source   integer NOT NULL DEFAULT 0 CHECK (has_source IN (0, 1));
ALTER TABLE outgoing_message ADD COLUMN reason_class text NOT NULL DEFAULT '' CHECK (reason_class IN ('', 'throttled', 'recipient-not-found'));

-- message_id: the one that a direct send to one recipient is answered with, before any row has it.
ALTER TABLE notification_job ADD COLUMN message_id text;

-- scheduled_at: when the first stage passed it on. moved_at: when it last changed its state.
ALTER TABLE notification_scheduler ADD COLUMN scheduled_at integer;
ALTER TABLE notification_scheduler ADD COLUMN moved_at     integer;

ALTER TABLE support_case ADD COLUMN resolved_at integer;
ALTER TABLE support_case ADD COLUMN resolved_by text;
ALTER TABLE support_case ADD COLUMN resolution  text CHECK (length(CAST(resolution AS blob)) <= 4096);

-- One line for every change of an outgoing row's state, written by the statement that makes the change (I-42).
CREATE TABLE transition (
  tenant_id   text NOT NULL,
  bucket      integer NOT NULL,
  outgoing_id integer NOT NULL,
  version     integer NOT NULL,
  from_status text NOT NULL,
  to_status   text NOT NULL,
  at          integer NOT NULL,
  actor       text NOT NULL,
  reason      text,
  PRIMARY KEY (bucket, outgoing_id, version)
) STRICT;

CREATE TABLE delivery_attempt (
  tenant_id           text NOT NULL,
  bucket              integer NOT NULL,
  outgoing_id         integer NOT NULL,
  attempt             integer NOT NULL CHECK (attempt >= 1),
  claim_token         text NOT NULL,
  account             text NOT NULL,
  status              text NOT NULL CHECK (status IN ('Accepted', 'Refused', 'Deferred', 'Misconfigured', 'Unknown')),
  provider_message_id text CHECK (length(CAST(provider_message_id AS blob)) <= 512),
  reason              text,
  content_hash        text,
  latency_ms          integer,
  at                  integer NOT NULL,
  correlation_id      text NOT NULL,
  traceparent         text,
  PRIMARY KEY (bucket, outgoing_id, attempt)
) STRICT;

-- Every provider event as received, late and repeated ones too; applied in batches by track. One whose row is not known
-- yet waits, and goes to the end of the line (look_at), so that it keeps nobody behind it waiting.
CREATE TABLE webhook_event (
  tenant_id           text NOT NULL,
  account             text NOT NULL,
  event_id            text NOT NULL CHECK (length(CAST(event_id AS blob)) BETWEEN 1 AND 512),
  status              text NOT NULL,
  message_id          text,
  recipient_key_hash  text,
  provider_message_id text,
  happened_at         integer NOT NULL,
  raw                 text NOT NULL CHECK (length(CAST(raw AS blob)) <= 65536),
  received_at         integer NOT NULL,
  look_at             integer NOT NULL DEFAULT 0,
  applied_at          integer,
  PRIMARY KEY (tenant_id, account, event_id)
) STRICT;

CREATE TABLE person (
  tenant_id         text NOT NULL,
  recipient_id_hash text NOT NULL CHECK (length(recipient_id_hash) = 32 AND recipient_id_hash NOT GLOB '*[^0-9a-f]*'),
  domain            text NOT NULL CHECK (domain IN ('user', 'employee')),
  person_id         text NOT NULL,
  profile           blob NOT NULL,
  PRIMARY KEY (tenant_id, recipient_id_hash),
  UNIQUE (tenant_id, domain, person_id)
) STRICT;

CREATE TABLE contact (
  tenant_id         text NOT NULL,
  recipient_id_hash text NOT NULL,
  channel           text NOT NULL CHECK (channel IN ('email', 'sms', 'push', 'chat')),
  address_id        integer NOT NULL,
  PRIMARY KEY (tenant_id, recipient_id_hash, channel, address_id)
) STRICT;

CREATE TABLE audience_group (
  tenant_id text NOT NULL,
  guid      text NOT NULL,
  name      text NOT NULL,
  PRIMARY KEY (tenant_id, guid)
) STRICT;

CREATE TABLE group_member (
  tenant_id         text NOT NULL,
  group_guid        text NOT NULL,
  recipient_id_hash text NOT NULL,
  PRIMARY KEY (tenant_id, group_guid, recipient_id_hash)
) STRICT;

-- A published template never changes; new content is a new version.
CREATE TABLE template (
  tenant_id    text NOT NULL,
  template_key text NOT NULL CHECK (length(CAST(template_key AS blob)) BETWEEN 1 AND 200),
  version      integer NOT NULL CHECK (version >= 1),
  content_hash text NOT NULL,
  bundle       text NOT NULL CHECK (length(CAST(bundle AS blob)) <= 1048576),
  created_at   integer NOT NULL,
  PRIMARY KEY (tenant_id, template_key, version)
) STRICT;

CREATE TABLE type_setting (
  tenant_id  text NOT NULL,
  event_type text NOT NULL,
  enabled    integer NOT NULL CHECK (enabled IN (0, 1)),
  changed_by text NOT NULL,
  changed_at integer NOT NULL,
  PRIMARY KEY (tenant_id, event_type)
) STRICT;

-- Found by the random key id, which no caller chooses; the secret itself is never stored.
CREATE TABLE api_key (
  key_id      text PRIMARY KEY CHECK (length(CAST(key_id AS blob)) BETWEEN 8 AND 64),
  tenant_id   text NOT NULL,
  secret_hash text NOT NULL,
  actor       text NOT NULL,
  role        text NOT NULL CHECK (role IN ('viewer', 'author', 'sender', 'support', 'admin')),
  created_at  integer NOT NULL,
  expires_at  integer,
  revoked_at  integer
) STRICT;

-- Acts of people and support tools, each chained to the one before by its hash.
CREATE TABLE audit_log (
  tenant_id     text NOT NULL,
  seq           integer NOT NULL,
  at            integer NOT NULL,
  actor         text NOT NULL,
  act           text NOT NULL,
  subject       text NOT NULL,
  reason        text,
  details       text NOT NULL DEFAULT '{}' CHECK (length(CAST(details AS blob)) <= 4096),
  previous_hash text NOT NULL,
  hash          text NOT NULL,
  PRIMARY KEY (tenant_id, seq)
) STRICT;

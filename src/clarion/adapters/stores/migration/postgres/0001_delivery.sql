-- What is delivered: inbox messages, outgoing messages and the flows that they are claimed from, what happened to each
-- and what providers reported.

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
CREATE INDEX user_message_message ON user_message (tenant_id, message_id);
CREATE INDEX user_message_job ON user_message (tenant_id, job_row_key);

-- What claiming shares out: few and small, never one per recipient. broadcast: the campaign, '' for none. account: the
-- provider account that uncertain rows are pinned to, '' for none.
CREATE TABLE flow (
  id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  tenant_id text NOT NULL,
  lane      text NOT NULL,
  route     text NOT NULL,
  broadcast text NOT NULL DEFAULT '',
  account   text NOT NULL DEFAULT '',
  UNIQUE (tenant_id, lane, route, broadcast, account)
);
CREATE INDEX flow_route ON flow (route);
CREATE INDEX flow_broadcast ON flow (tenant_id, broadcast) WHERE broadcast <> '';

-- The gate of a broadcast (a campaign). Pausing or canceling a million messages is one update of one row here: it waits
-- for the claims that hold the row, and no claim begins after it. Direct sends have no broadcast and no gate.
CREATE TABLE broadcast (
  tenant_id text NOT NULL,
  broadcast text NOT NULL CHECK (octet_length(broadcast) BETWEEN 1 AND 512),
  gate      text NOT NULL DEFAULT 'Open' CHECK (gate IN ('Open', 'Paused', 'Canceled')),
  PRIMARY KEY (tenant_id, broadcast)
);
CREATE INDEX broadcast_canceled ON broadcast (tenant_id, broadcast) WHERE gate = 'Canceled';

-- Totals of a broadcast's flows, changed by the statement that changes the rows; '' where no reason is told apart.
CREATE TABLE flow_count (
  tenant_id    text NOT NULL,
  flow_id      bigint NOT NULL,
  status       text NOT NULL,
  reason_class text NOT NULL DEFAULT '',
  n            bigint NOT NULL,
  PRIMARY KEY (tenant_id, flow_id, status, reason_class)
) WITH (fillfactor = 50);

-- What an outgoing message is found by, made with it and never changed. It stands apart because PostgreSQL writes every
-- index of a table anew when a row changes: these keys come in no order, so each claim and each result would read and
-- write two pages that nobody has in memory. SQLite writes only what has changed and has both keys on the message.
CREATE TABLE outgoing_key (
  tenant_id   text NOT NULL,
  bucket      integer NOT NULL,
  pk          text NOT NULL,
  rk          text NOT NULL,
  message_id  uuid NOT NULL,
  outgoing_id bigint NOT NULL,
  PRIMARY KEY (tenant_id, bucket, pk, rk)
);
CREATE INDEX outgoing_key_message ON outgoing_key (tenant_id, message_id);

-- address_id and flow_id have no foreign keys: rows are made only by INSERT … SELECT over those tables, and neither
-- table's rows are ever updated in their keys. Every row has its key in outgoing_key.
-- in_line: its due time was moved because an earlier message of its order key comes first. Whoever closes that one may
-- make this one due; a due time that somebody asked for is left alone.
-- cancel_actor: who set cancel_at, for the line that the claim writes.
-- reason_class: the few reasons that totals tell apart.
-- has_broadcast: whether its flow has a broadcast, whose totals are kept. It stands here too, because a statement may
-- find the row in a flow that is too new for it to see.
CREATE TABLE outgoing_message (
  id                  bigint GENERATED ALWAYS AS IDENTITY,
  tenant_id           text NOT NULL,
  bucket              integer NOT NULL,
  pk                  text NOT NULL CHECK (octet_length(pk) BETWEEN 1 AND 512),
  rk                  text NOT NULL CHECK (octet_length(rk) BETWEEN 1 AND 512),
  message_id          uuid NOT NULL,
  address_id          bigint NOT NULL,
  channel             text NOT NULL,
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
  cancel_actor        text,
  settle_at           timestamptz,
  claim_token         uuid,
  account             text,
  attempts            smallint NOT NULL DEFAULT 0,
  units               smallint NOT NULL DEFAULT 1,
  not_called          smallint NOT NULL DEFAULT 0,
  replays             smallint NOT NULL DEFAULT 0,
  in_line             boolean NOT NULL DEFAULT false,
  has_broadcast       boolean NOT NULL DEFAULT false,
  replay_authorised   boolean NOT NULL DEFAULT false,
  uncertain_policy    text NOT NULL DEFAULT 'prefer_loss',
  first_unknown_at    timestamptz,
  provider_message_id text,
  content_hash        text,
  reason              text,
  reason_class        text NOT NULL DEFAULT '',
  correlation_id      text NOT NULL,
  traceparent         text,
  created_at          timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (bucket, id),
  CHECK ((due_at IS NOT NULL) = (status IN ('Created', 'RetryReady'))),
  CHECK ((lease_until IS NOT NULL) = (status IN ('Sending')))
) WITH (fillfactor = 70);
CREATE INDEX outgoing_message_queue ON outgoing_message (flow_id, due_at, id) WHERE due_at IS NOT NULL;
CREATE INDEX outgoing_message_lease ON outgoing_message (lease_until) WHERE lease_until IS NOT NULL;
CREATE INDEX outgoing_message_order ON outgoing_message (order_key, id)
  WHERE order_key IS NOT NULL AND (due_at IS NOT NULL OR lease_until IS NOT NULL);
CREATE INDEX outgoing_message_settle ON outgoing_message (settle_at) WHERE settle_at IS NOT NULL;
CREATE INDEX outgoing_message_uncertain ON outgoing_message (tenant_id, id) WHERE status = 'Uncertain';
CREATE INDEX outgoing_message_cancel ON outgoing_message (cancel_at) WHERE cancel_at IS NOT NULL AND due_at IS NOT NULL;
CREATE INDEX outgoing_message_failed ON outgoing_message (tenant_id, id) WHERE status = 'FailedFinal';

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
CREATE INDEX delivery_attempt_provider_message ON delivery_attempt (tenant_id, account, provider_message_id)
  WHERE provider_message_id IS NOT NULL;

-- Every provider event as received, once each, applied in batches by track. One whose row is not known yet waits: it
-- goes to the end of the line (look_at), so that those behind it do not wait too.
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
  look_at             timestamptz NOT NULL,
  applied_at          timestamptz,
  PRIMARY KEY (tenant_id, account, event_id)
);
CREATE INDEX webhook_event_waiting ON webhook_event (look_at, received_at) WHERE applied_at IS NULL;
CREATE INDEX webhook_event_message ON webhook_event (tenant_id, message_id) WHERE message_id IS NOT NULL;
CREATE INDEX webhook_event_provider_message ON webhook_event (tenant_id, account, provider_message_id)
  WHERE provider_message_id IS NOT NULL;

-- What happened to things, as applications tell it and as the store tells it of every change to a source.

-- partition_key, row_key: where its entity's story has it. event_guid: one event is one row, whatever it says of itself
-- the second time. data: sealed. metrics: what its handling came to, as JSON. due_at: when it is to be handled.
CREATE TABLE entity_event (
  id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  tenant_id      text NOT NULL,
  partition_key  text NOT NULL CHECK (octet_length(partition_key) BETWEEN 1 AND 512),
  row_key        text NOT NULL CHECK (octet_length(row_key) BETWEEN 1 AND 512),
  event_guid     uuid NOT NULL,
  event_type     text NOT NULL CHECK (octet_length(event_type) BETWEEN 1 AND 800),
  entity_type    text NOT NULL CHECK (octet_length(entity_type) BETWEEN 1 AND 800),
  entity_guid    uuid NOT NULL,
  occurred_at    timestamptz NOT NULL,
  source_type    text CHECK (octet_length(source_type) BETWEEN 1 AND 64),
  source         text CHECK (octet_length(source) BETWEEN 1 AND 800),
  source_version integer,
  business_unit  uuid,
  data           bytea CHECK (octet_length(data) <= 32768),
  data_hash      text NOT NULL,
  actor          text,
  status         text NOT NULL CHECK (status IN ('Ready', 'Processing', 'Done', 'Failed')),
  version        integer NOT NULL DEFAULT 1,
  due_at         timestamptz,
  lease_until    timestamptz,
  retry_count    integer NOT NULL DEFAULT 0,
  rescue_count   integer NOT NULL DEFAULT 0,
  reason         text CHECK (octet_length(reason) <= 4096),
  metrics        text CHECK (octet_length(metrics) <= 4096),
  correlation_id text NOT NULL,
  traceparent    text,
  created_at     timestamptz NOT NULL DEFAULT now(),
  UNIQUE (tenant_id, event_guid),
  CHECK ((due_at IS NOT NULL) = (status = 'Ready')),
  CHECK ((lease_until IS NOT NULL) = (status = 'Processing'))
);
-- Begins with the tenant, so that the first event of one is found behind ten thousand of another.
CREATE INDEX entity_event_due ON entity_event (tenant_id, due_at, id) WHERE due_at IS NOT NULL;
CREATE INDEX entity_event_lease ON entity_event (lease_until) WHERE lease_until IS NOT NULL;
CREATE INDEX entity_event_entity ON entity_event (tenant_id, entity_type, entity_guid, occurred_at, id);
CREATE INDEX entity_event_newest ON entity_event (tenant_id, occurred_at, id);
CREATE INDEX entity_event_status ON entity_event (tenant_id, status, occurred_at, id);

-- Behind which tenant the next claim of events begins; tenants take turns.
CREATE TABLE event_turn (
  only_row     boolean PRIMARY KEY DEFAULT true CHECK (only_row),
  after_tenant text NOT NULL
);
INSERT INTO event_turn (after_tenant) VALUES ('');

-- What an event type leads to at once: a notification type, or (null) explicitly none.
CREATE TABLE event_mapping (
  tenant_id         text NOT NULL,
  event_type        text COLLATE "C" NOT NULL CHECK (octet_length(event_type) BETWEEN 1 AND 800),
  notification_type text CHECK (octet_length(notification_type) BETWEEN 1 AND 200),
  changed_by        text NOT NULL,
  changed_at        timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, event_type)
);

-- The installation itself: what the schema says of itself, tenants and their keys, who may call, what people did, and
-- the cases that wait for a person.
--
-- True for every table of this step:
-- Every unique key that a caller can influence starts with tenant_id, so that no insert tells one tenant of another's.
-- Rows that retention will drop by the month carry that month (`bucket`) in every key, so that a later step can attach
-- their table as a partition without rewriting it.
-- A CHECK lists values only where they are states; a test compares these with the state tables of `domain/`. Lists that
-- grow (channels, kinds, roles, reasons ...) have none, because SQLite cannot change a CHECK without copying the table;
-- the program's enumerations admit them.
-- Lengths are bounded here too, so that no path around the program can store what the program would refuse.

CREATE TABLE schema_info (
  only_row    boolean PRIMARY KEY DEFAULT true CHECK (only_row),
  min_program text NOT NULL
);
INSERT INTO schema_info (min_program) VALUES ('0.1.0');

-- What each file of the steps was when it was run here: a database made by another edit of one is refused.
CREATE TABLE schema_step (
  file     text PRIMARY KEY,
  checksum text NOT NULL
);

CREATE TABLE tenant (
  tenant_id  text PRIMARY KEY CHECK (tenant_id ~ '^[a-z0-9][a-z0-9-]{0,62}$'),
  created_at timestamptz NOT NULL DEFAULT now()
);

-- Wrapped by a master key that lives outside the database: a dump alone opens nothing.
CREATE TABLE tenant_key (
  tenant_id  text NOT NULL REFERENCES tenant,
  purpose    text NOT NULL,
  serial     integer NOT NULL CHECK (serial >= 1),
  wrapped    bytea NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, purpose, serial)
);

-- Found by the random key id, which no caller chooses; the secret itself is never stored.
CREATE TABLE api_key (
  key_id      text PRIMARY KEY CHECK (octet_length(key_id) BETWEEN 8 AND 64),
  tenant_id   text NOT NULL,
  secret_hash text NOT NULL,
  actor       text NOT NULL,
  role        text NOT NULL,
  created_at  timestamptz NOT NULL DEFAULT now(),
  expires_at  timestamptz,
  revoked_at  timestamptz
);
CREATE INDEX api_key_tenant ON api_key (tenant_id);

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

CREATE TABLE support_case (
  tenant_id      text NOT NULL,
  case_id        uuid NOT NULL,
  kind           text NOT NULL,
  status         text NOT NULL CHECK (status IN ('Open', 'Resolved')),
  record         text NOT NULL,
  record_key     text NOT NULL,
  details        text NOT NULL CHECK (octet_length(details) <= 4096),
  seen_count     integer NOT NULL DEFAULT 1,
  correlation_id text NOT NULL,
  first_seen_at  timestamptz NOT NULL DEFAULT now(),
  last_seen_at   timestamptz NOT NULL DEFAULT now(),
  resolved_at    timestamptz,
  resolved_by    text,
  resolution     text CHECK (octet_length(resolution) <= 4096),
  PRIMARY KEY (tenant_id, case_id)
);
CREATE INDEX support_case_list ON support_case (tenant_id, status, case_id);
CREATE INDEX support_case_open ON support_case (tenant_id, case_id) WHERE status = 'Open';

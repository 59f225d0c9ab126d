-- The installation itself: what the schema says of itself, tenants and their keys, who may call, what people did, and
-- the cases that wait for a person.
--
-- True for every table of this step:
-- Every unique key that a caller can influence starts with tenant_id, so that no insert tells one tenant of another's.
-- Rows that retention will drop by the month carry that month (`bucket`) in every key, as on PostgreSQL.
-- A CHECK lists values only where they are states; a test compares these with the state tables of `domain/`. Lists that
-- grow (channels, kinds, roles, reasons ...) have none, because SQLite cannot change a CHECK without copying the table;
-- the program's enumerations admit them.
-- Lengths are bounded here too, so that no path around the program can store what the program would refuse.
-- Instants are microseconds since 1970 UTC, taken from the registered function clarion_now(); guids and dates are text.
-- AUTOINCREMENT, so that the id of a deleted row is never given to another one: other rows refer to rows by id.

CREATE TABLE schema_info (
  only_row    integer PRIMARY KEY DEFAULT 1 CHECK (only_row = 1),
  min_program text NOT NULL
) STRICT;
INSERT INTO schema_info (min_program) VALUES ('0.1.0');

-- What each file of the steps was when it was run here: a database made by another edit of one is refused.
CREATE TABLE schema_step (
  file     text PRIMARY KEY,
  checksum text NOT NULL
) STRICT;

-- The host's clock is the store's here. The latest instant handed out is kept, so that a wall clock set back between
-- two starts cannot give a lease away early (I-37).
CREATE TABLE store_clock (
  only_row   integer PRIMARY KEY DEFAULT 1 CHECK (only_row = 1),
  high_water integer NOT NULL
) STRICT;
INSERT INTO store_clock (high_water) VALUES (0);

CREATE TABLE tenant (
  tenant_id  text PRIMARY KEY
    CHECK (length(tenant_id) BETWEEN 1 AND 63 AND tenant_id NOT GLOB '*[^a-z0-9-]*' AND tenant_id NOT GLOB '-*'),
  created_at integer NOT NULL
) STRICT;

-- Wrapped by a master key that lives outside the database: a dump alone opens nothing.
CREATE TABLE tenant_key (
  tenant_id  text NOT NULL REFERENCES tenant,
  purpose    text NOT NULL,
  serial     integer NOT NULL CHECK (serial >= 1),
  wrapped    blob NOT NULL,
  created_at integer NOT NULL,
  PRIMARY KEY (tenant_id, purpose, serial)
) STRICT;

-- Found by the random key id, which no caller chooses; the secret itself is never stored.
CREATE TABLE api_key (
  key_id      text PRIMARY KEY CHECK (length(CAST(key_id AS blob)) BETWEEN 8 AND 64),
  tenant_id   text NOT NULL,
  secret_hash text NOT NULL,
  actor       text NOT NULL,
  role        text NOT NULL,
  created_at  integer NOT NULL,
  expires_at  integer,
  revoked_at  integer
) STRICT;
CREATE INDEX api_key_tenant ON api_key (tenant_id);

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

CREATE TABLE support_case (
  tenant_id      text NOT NULL,
  case_id        text NOT NULL,
  kind           text NOT NULL,
  status         text NOT NULL CHECK (status IN ('Open', 'Resolved')),
  record         text NOT NULL,
  record_key     text NOT NULL,
  details        text NOT NULL CHECK (length(CAST(details AS blob)) <= 4096),
  seen_count     integer NOT NULL DEFAULT 1,
  correlation_id text NOT NULL,
  first_seen_at  integer NOT NULL,
  last_seen_at   integer NOT NULL,
  resolved_at    integer,
  resolved_by    text,
  resolution     text CHECK (length(CAST(resolution AS blob)) <= 4096),
  PRIMARY KEY (tenant_id, case_id)
) STRICT;
CREATE INDEX support_case_list ON support_case (tenant_id, status, case_id);
CREATE INDEX support_case_open ON support_case (tenant_id, case_id) WHERE status = 'Open';

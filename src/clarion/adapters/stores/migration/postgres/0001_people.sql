-- Whom messages go to and what they say: people, their addresses and groups, templates, and which types are enabled.

CREATE TABLE person (
  tenant_id         text NOT NULL,
  recipient_id_hash text NOT NULL CHECK (recipient_id_hash ~ '^[0-9a-f]{32}$'),
  domain            text NOT NULL,
  person_id         text NOT NULL,
  profile           bytea NOT NULL,
  PRIMARY KEY (tenant_id, recipient_id_hash),
  UNIQUE (tenant_id, domain, person_id)
);

CREATE TABLE address_version (
  id                bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  tenant_id         text NOT NULL,
  recipient_id_hash text NOT NULL CHECK (recipient_id_hash ~ '^[0-9a-f]{32}$'),
  channel           text NOT NULL,
  serial            integer NOT NULL CHECK (serial >= 1),
  key_hash          text NOT NULL CHECK (key_hash ~ '^[0-9a-f]{32}$'),
  destination_index text NOT NULL CHECK (destination_index ~ '^[0-9a-f]{32}$'),
  ciphertext        bytea NOT NULL,
  correlation_id    text NOT NULL,
  created_at        timestamptz NOT NULL DEFAULT now(),
  UNIQUE (tenant_id, recipient_id_hash, channel, serial)
);
CREATE INDEX address_version_destination ON address_version (tenant_id, destination_index);

CREATE TABLE contact (
  tenant_id         text NOT NULL,
  recipient_id_hash text NOT NULL,
  channel           text NOT NULL,
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

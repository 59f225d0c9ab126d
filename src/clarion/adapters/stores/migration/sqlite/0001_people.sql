-- Whom messages go to and what they say: people, their addresses and groups, templates, and which types are enabled.

CREATE TABLE person (
  tenant_id         text NOT NULL,
  recipient_id_hash text NOT NULL CHECK (length(recipient_id_hash) = 32 AND recipient_id_hash NOT GLOB '*[^0-9a-f]*'),
  domain            text NOT NULL,
  person_id         text NOT NULL,
  profile           blob NOT NULL,
  PRIMARY KEY (tenant_id, recipient_id_hash),
  UNIQUE (tenant_id, domain, person_id)
) STRICT;

CREATE TABLE address_version (
  id                integer PRIMARY KEY AUTOINCREMENT,
  tenant_id         text NOT NULL,
  recipient_id_hash text NOT NULL CHECK (length(recipient_id_hash) = 32 AND recipient_id_hash NOT GLOB '*[^0-9a-f]*'),
  channel           text NOT NULL,
  serial            integer NOT NULL CHECK (serial >= 1),
  key_hash          text NOT NULL CHECK (length(key_hash) = 32 AND key_hash NOT GLOB '*[^0-9a-f]*'),
  destination_index text NOT NULL CHECK (length(destination_index) = 32 AND destination_index NOT GLOB '*[^0-9a-f]*'),
  ciphertext        blob NOT NULL,
  correlation_id    text NOT NULL,
  created_at        integer NOT NULL,
  UNIQUE (tenant_id, recipient_id_hash, channel, serial)
) STRICT;
CREATE INDEX address_version_destination ON address_version (tenant_id, destination_index);

CREATE TABLE contact (
  tenant_id         text NOT NULL,
  recipient_id_hash text NOT NULL,
  channel           text NOT NULL,
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

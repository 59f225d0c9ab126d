-- People: how they are reached, what groups of them are found by, and who stands for whom.

-- verified: whether the address is known to be the person's own; what an owner says is taken to be so. retired_at: since
-- when nothing goes there any more, because its provider knows it no longer.
ALTER TABLE contact ADD COLUMN verified boolean NOT NULL DEFAULT true;
ALTER TABLE contact ADD COLUMN retired_at timestamptz;

-- Attributes that a tenant has declared, by which people can be chosen. They are not sealed, as a profile is.
CREATE TABLE attribute (
  tenant_id text NOT NULL,
  name      text NOT NULL CHECK (octet_length(name) BETWEEN 1 AND 64),
  kind      text NOT NULL,
  PRIMARY KEY (tenant_id, name)
);

CREATE TABLE person_attribute (
  tenant_id         text NOT NULL,
  recipient_id_hash text NOT NULL,
  name              text NOT NULL,
  value             text NOT NULL CHECK (octet_length(value) BETWEEN 1 AND 200),
  PRIMARY KEY (tenant_id, recipient_id_hash, name)
);
CREATE INDEX person_attribute_value ON person_attribute (tenant_id, name, value, recipient_id_hash);

-- A group may hold other groups; whoever is in one of them is in it too.
CREATE TABLE group_child (
  tenant_id  text NOT NULL,
  group_guid uuid NOT NULL,
  child_guid uuid NOT NULL,
  PRIMARY KEY (tenant_id, group_guid, child_guid)
);
CREATE INDEX group_child_child ON group_child (tenant_id, child_guid);

-- Who belongs to a business unit.
CREATE TABLE unit_member (
  tenant_id         text NOT NULL,
  unit_guid         uuid NOT NULL,
  recipient_id_hash text NOT NULL,
  PRIMARY KEY (tenant_id, unit_guid, recipient_id_hash)
);
CREATE INDEX unit_member_person ON unit_member (tenant_id, recipient_id_hash);

-- Who holds a role, in one business unit (its guid as text) or, where that is empty, in the whole tenant.
CREATE TABLE role_holder (
  tenant_id         text NOT NULL,
  role              text NOT NULL CHECK (octet_length(role) BETWEEN 1 AND 64),
  unit              text NOT NULL DEFAULT '' CHECK (octet_length(unit) <= 36),
  recipient_id_hash text NOT NULL,
  PRIMARY KEY (tenant_id, role, unit, recipient_id_hash)
);
CREATE INDEX role_holder_person ON role_holder (tenant_id, recipient_id_hash);

-- What a person is to a thing, such as the guardian of a child.
CREATE TABLE entity_relation (
  tenant_id         text NOT NULL,
  entity_type       text NOT NULL CHECK (octet_length(entity_type) BETWEEN 1 AND 200),
  entity_guid       uuid NOT NULL,
  relation          text NOT NULL CHECK (octet_length(relation) BETWEEN 1 AND 64),
  recipient_id_hash text NOT NULL,
  PRIMARY KEY (tenant_id, entity_type, entity_guid, relation, recipient_id_hash)
);
CREATE INDEX entity_relation_person ON entity_relation (tenant_id, recipient_id_hash);

-- What an administrator says of a notification type, for the whole tenant and for single business units; and where a
-- stage goes on that takes several steps.

-- recipients: a JSON array of groups, roles, relations and units, who gets it where a send names nobody. channels: a
-- JSON array of those that it goes by, of the type's own. Null says nothing, and the type itself decides.
ALTER TABLE type_setting ADD COLUMN recipients text CHECK (octet_length(recipients) <= 8192);
ALTER TABLE type_setting ADD COLUMN channels text CHECK (octet_length(channels) <= 512);

-- What a business unit says of a type; where a column is null, the tenant's own row counts.
CREATE TABLE unit_setting (
  tenant_id  text NOT NULL,
  event_type text NOT NULL CHECK (octet_length(event_type) BETWEEN 1 AND 200),
  unit_guid  uuid NOT NULL,
  enabled    boolean,
  recipients text CHECK (octet_length(recipients) <= 8192),
  channels   text CHECK (octet_length(channels) <= 512),
  changed_by text NOT NULL,
  changed_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, event_type, unit_guid)
);

-- How far a stage has come that gives its row back between two steps; null at the beginning of each stage.
ALTER TABLE notification_scheduler ADD COLUMN cursor text;

-- What reminders are about, the settings that say when and whom, and how far they were gone through.

-- content: sealed; content_hash tells two apart. row_version is counted here and never goes back, so what is left of a
-- source that was removed stays as a row that is not active.
CREATE TABLE source_record (
  tenant_id     text NOT NULL,
  source_type   text NOT NULL CHECK (octet_length(source_type) BETWEEN 1 AND 64),
  source        text COLLATE "C" NOT NULL CHECK (octet_length(source) BETWEEN 1 AND 800),
  entity_guid   uuid NOT NULL,
  business_unit uuid,
  active        boolean NOT NULL,
  content       bytea NOT NULL CHECK (octet_length(content) <= 32768),
  content_hash  text NOT NULL,
  row_version   integer NOT NULL,
  changed_at    timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, source_type, source)
);
CREATE INDEX source_record_active ON source_record (tenant_id, source_type, source) WHERE active;
CREATE INDEX source_record_changed ON source_record (tenant_id, source_type, changed_at, source) WHERE active;

-- The dates of active sources, by which a scan finds those of the next days.
CREATE TABLE source_day (
  tenant_id   text NOT NULL,
  source_type text NOT NULL CHECK (octet_length(source_type) BETWEEN 1 AND 64),
  source      text COLLATE "C" NOT NULL CHECK (octet_length(source) BETWEEN 1 AND 800),
  name        text COLLATE "C" NOT NULL CHECK (octet_length(name) BETWEEN 1 AND 64),
  day         date NOT NULL,
  PRIMARY KEY (tenant_id, source_type, source, name)
);
CREATE INDEX source_day_day ON source_day (tenant_id, source_type, day, source, name);

-- setting: what the administrator wrote, as JSON. plan_at: when its sources are to be planned anew, or when the lease of
-- whoever does so ends; null once they are. plan_cursor: behind which source that goes on. plan_token: counts claims.
CREATE TABLE reminder_setting (
  tenant_id       text NOT NULL,
  guid            uuid NOT NULL,
  source_type     text NOT NULL CHECK (octet_length(source_type) BETWEEN 1 AND 64),
  setting         text NOT NULL CHECK (octet_length(setting) <= 32768),
  version         integer NOT NULL,
  planned_version integer NOT NULL,
  plan_at         timestamptz,
  plan_cursor     text NOT NULL DEFAULT '',
  plan_token      integer NOT NULL DEFAULT 0,
  changed_by      text NOT NULL,
  changed_at      timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, guid),
  CHECK ((plan_at IS NULL) = (planned_version = version))
);
CREATE INDEX reminder_setting_type ON reminder_setting (tenant_id, source_type, guid);
CREATE INDEX reminder_setting_plan ON reminder_setting (plan_at, tenant_id, guid) WHERE plan_at IS NOT NULL;

-- The reconciliation of one type of source in one tenant. watermark_at: up to when changes were gone through. round_at:
-- when the round began that is under way, null between two. cursor: behind what it goes on. due_at: when it may be
-- taken, or when the lease of whoever has it ends; next_at: when the round after this one begins. token counts claims.
CREATE TABLE repair (
  tenant_id    text NOT NULL,
  source_type  text NOT NULL CHECK (octet_length(source_type) BETWEEN 1 AND 64),
  watermark_at timestamptz NOT NULL,
  round_at     timestamptz,
  cursor       text,
  due_at       timestamptz NOT NULL,
  next_at      timestamptz NOT NULL,
  token        integer NOT NULL DEFAULT 0,
  PRIMARY KEY (tenant_id, source_type)
);
CREATE INDEX repair_due ON repair (source_type, due_at, tenant_id);

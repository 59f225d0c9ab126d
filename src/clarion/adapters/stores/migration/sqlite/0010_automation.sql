-- How occurrences wait to be claimed and listed, and what plans keep about the sources they are made for.

-- run_now_at: when a person made it due, whatever its plan says. end_reason: why it ended without anybody being told.
ALTER TABLE automation_scheduler ADD COLUMN run_now_at integer;
ALTER TABLE automation_scheduler ADD COLUMN end_reason text;

-- due_at: when it may be claimed, a retry it waits for included. standing: which list shows it; claims read 'pending'.
ALTER TABLE automation_scheduler ADD COLUMN due_at integer GENERATED ALWAYS AS (
  CASE
    WHEN next_retry_at > coalesce(run_now_at, scheduled_at) THEN next_retry_at
    ELSE coalesce(run_now_at, scheduled_at)
  END
) VIRTUAL;
ALTER TABLE automation_scheduler ADD COLUMN standing text GENERATED ALWAYS AS (
  CASE
    WHEN on_support_hold = 1 THEN 'held'
    WHEN status = 'Pending' THEN 'pending'
    WHEN status = 'Processing' THEN 'processing'
    WHEN status = 'Failed' THEN 'failed'
    ELSE 'ended'
  END
) VIRTUAL;

-- They knew nothing of retries and of what is over; 0010_due.sql builds what takes their place.
DROP INDEX automation_scheduler_due;
DROP INDEX automation_scheduler_source;

-- How many plans were carried out for a source: one that was made over an older count is overtaken.
CREATE TABLE source_plan (
  tenant_id   text NOT NULL,
  source_type text NOT NULL,
  source      text NOT NULL,
  serial      integer NOT NULL,
  PRIMARY KEY (tenant_id, source_type, source)
) STRICT;

-- The last truth of a metric under one setting and scope, and how often it became true.
CREATE TABLE threshold_state (
  tenant_id   text NOT NULL,
  source_type text NOT NULL,
  source      text NOT NULL,
  setting     text NOT NULL,
  metric      text NOT NULL,
  scope       text NOT NULL,
  met         integer NOT NULL CHECK (met IN (0, 1)),
  edge_no     integer NOT NULL CHECK (edge_no >= 0),
  PRIMARY KEY (tenant_id, source_type, source, setting, metric, scope)
) STRICT;

-- Lines of entities' stories; a line that is written again replaces itself, and nothing else ever does.
CREATE TABLE entity_history (
  tenant_id      text NOT NULL,
  entity_guid    text NOT NULL,
  row_key        text NOT NULL CHECK (length(CAST(row_key AS blob)) BETWEEN 1 AND 1200),
  kind           text NOT NULL,
  subject        text NOT NULL,
  cause          text NOT NULL,
  at             integer NOT NULL,
  text           text NOT NULL CHECK (length(CAST(text AS blob)) <= 4096),
  correlation_id text NOT NULL,
  PRIMARY KEY (tenant_id, entity_guid, row_key)
) STRICT;
CREATE INDEX entity_history_newest ON entity_history (tenant_id, entity_guid, at, row_key);

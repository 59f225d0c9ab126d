-- The inbox of people, and everything that one person got.

-- category and expires_at: those of its type and its send; an expired line is in no list. in_inbox: whether it has its
-- row in inbox_state and is counted. Lines of a program that knows neither have not, until the janitor enters them.
ALTER TABLE user_message ADD COLUMN category text;
ALTER TABLE user_message ADD COLUMN expires_at timestamptz;
ALTER TABLE user_message ADD COLUMN in_inbox boolean NOT NULL DEFAULT false;

-- What its reader made of a line; it stands apart from the line, which never changes and is larger.
-- mark: the inbox's mark when this row was written. What was done to all lines since counts more than what stands here.
-- expires_at: null where the line does not expire, and once it has been swept.
-- swept: it has expired and is not counted any more.
CREATE TABLE inbox_state (
  tenant_id         text NOT NULL,
  recipient_id_hash text NOT NULL,
  row_key           text COLLATE "C" NOT NULL,
  bucket            integer NOT NULL,
  user_message_id   bigint NOT NULL,
  mark              integer NOT NULL,
  seen_at           timestamptz,
  read_at           timestamptz,
  archived_at       timestamptz,
  expires_at        timestamptz,
  swept             boolean NOT NULL DEFAULT false,
  PRIMARY KEY (bucket, user_message_id)
) WITH (fillfactor = 80);
CREATE INDEX inbox_state_newest ON inbox_state (tenant_id, recipient_id_hash, row_key) WHERE NOT swept;
CREATE INDEX inbox_state_expired ON inbox_state (tenant_id, recipient_id_hash, expires_at)
  WHERE expires_at IS NOT NULL;
CREATE INDEX inbox_state_sweep ON inbox_state (expires_at) WHERE expires_at IS NOT NULL;

-- One inbox: its counters, changed in the transaction that changes its lines, and what was done to all its lines.
-- mark: how often something was. seen_mark, read_mark and archived_mark are the marks of the last time for each, and
-- all_seen_at, all_read_at and all_archived_at when that was, null where it was undone; unread_mark and unarchived_mark
-- are those of the last undoing.
CREATE TABLE inbox_count (
  tenant_id         text NOT NULL,
  recipient_id_hash text NOT NULL,
  lines             integer NOT NULL DEFAULT 0 CHECK (lines >= 0),
  unseen            integer NOT NULL DEFAULT 0 CHECK (unseen >= 0),
  unread            integer NOT NULL DEFAULT 0 CHECK (unread >= 0),
  archived          integer NOT NULL DEFAULT 0 CHECK (archived >= 0),
  archived_unseen   integer NOT NULL DEFAULT 0 CHECK (archived_unseen >= 0),
  archived_unread   integer NOT NULL DEFAULT 0 CHECK (archived_unread >= 0),
  mark              integer NOT NULL DEFAULT 0,
  seen_mark         integer NOT NULL DEFAULT 0,
  read_mark         integer NOT NULL DEFAULT 0,
  unread_mark       integer NOT NULL DEFAULT 0,
  archived_mark     integer NOT NULL DEFAULT 0,
  unarchived_mark   integer NOT NULL DEFAULT 0,
  all_seen_at       timestamptz,
  all_read_at       timestamptz,
  all_archived_at   timestamptz,
  PRIMARY KEY (tenant_id, recipient_id_hash)
) WITH (fillfactor = 50);

-- Everything that one person got, or was left out of: a row for each recipient of a job, made with its frozen set.
-- job_key begins with the job's time, counted down, so that the newest comes first.
CREATE TABLE recipient_job (
  tenant_id         text NOT NULL,
  recipient_id_hash text NOT NULL,
  job_key           text COLLATE "C" NOT NULL CHECK (octet_length(job_key) BETWEEN 1 AND 512),
  job_id            bigint NOT NULL,
  PRIMARY KEY (tenant_id, recipient_id_hash, job_key)
);

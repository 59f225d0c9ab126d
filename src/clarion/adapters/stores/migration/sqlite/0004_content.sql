-- What a message says to whom: the profiles that templates read, languages and zones, and what a type says of its sends.
--
-- True for every column of this step that holds a language or a zone: a language is a BCP 47 tag such as de-AT, a zone
-- a name of the IANA database such as Europe/Vienna; null says nothing, and the next one in the chain is asked. The
-- columns of tables that may be large have no CHECK, because adding one reads the whole table while nobody can use it;
-- their values come from the small tables and from requests, which have limits.

-- A profile as it was, sealed; it never changes, and outgoing messages refer to the one they were made with. The serial
-- is counted here. profile_hash is keyed: the same profile has the same hash, so it is stored once.
CREATE TABLE person_version (
  id                integer PRIMARY KEY AUTOINCREMENT,
  tenant_id         text NOT NULL,
  recipient_id_hash text NOT NULL CHECK (length(recipient_id_hash) = 32 AND recipient_id_hash NOT GLOB '*[^0-9a-f]*'),
  serial            integer NOT NULL CHECK (serial >= 1),
  profile_hash      text NOT NULL,
  profile           blob NOT NULL,
  correlation_id    text NOT NULL,
  created_at        integer NOT NULL,
  UNIQUE (tenant_id, recipient_id_hash, serial),
  UNIQUE (tenant_id, recipient_id_hash, profile_hash)
) STRICT;

-- person_version_id: the profile that new messages are made with. The column `profile` is no longer filled.
ALTER TABLE person ADD COLUMN person_version_id integer;
ALTER TABLE person ADD COLUMN locale text CHECK (length(CAST(locale AS blob)) BETWEEN 1 AND 35);
ALTER TABLE person ADD COLUMN tz_id text CHECK (length(CAST(tz_id AS blob)) BETWEEN 1 AND 64);

ALTER TABLE tenant ADD COLUMN locale text CHECK (length(CAST(locale AS blob)) BETWEEN 1 AND 35);
ALTER TABLE tenant ADD COLUMN tz_id text CHECK (length(CAST(tz_id AS blob)) BETWEEN 1 AND 64);

CREATE TABLE business_unit (
  tenant_id text NOT NULL,
  guid      text NOT NULL,
  name      text NOT NULL CHECK (length(CAST(name AS blob)) BETWEEN 1 AND 512),
  locale    text CHECK (length(CAST(locale AS blob)) BETWEEN 1 AND 35),
  tz_id     text CHECK (length(CAST(tz_id AS blob)) BETWEEN 1 AND 64),
  PRIMARY KEY (tenant_id, guid)
) STRICT;

-- A version whose merges had to be killed again and again: nothing is sent with it any more.
ALTER TABLE template ADD COLUMN quarantined_at integer;

-- one_time_code: its payload is erased as soon as all its messages are final.
ALTER TABLE notification_job ADD COLUMN one_time_code integer NOT NULL DEFAULT 0 CHECK (one_time_code IN (0, 1));

-- person_version_id, locale and tz_id: what the message is merged with besides its job's data, decided when it was made.
-- attempts_max: how many calls it may take, where its type says so.
ALTER TABLE outgoing_message ADD COLUMN person_version_id integer;
ALTER TABLE outgoing_message ADD COLUMN locale text;
ALTER TABLE outgoing_message ADD COLUMN tz_id text;
ALTER TABLE outgoing_message ADD COLUMN attempts_max integer;

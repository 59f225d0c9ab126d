-- Who must not get what: bounces, complaints, words such as STOP, unsubscribing, and preferences that are off are all
-- rows of one table, which every claim asks.

-- subject: the index of a destination, or the hash of a recipient; both are keyed, so neither can be read. scope: `*` for
-- everything, a category, or a category and a channel, `news:email`; both parts are written as in every key. cause: what
-- it came from. note: what was said about it, by whoever reported it.
CREATE TABLE suppression (
  tenant_id  text NOT NULL,
  subject    text NOT NULL CHECK (length(subject) = 32 AND subject NOT GLOB '*[^0-9a-f]*'),
  scope      text NOT NULL CHECK (length(CAST(scope AS blob)) BETWEEN 1 AND 512),
  cause      text NOT NULL,
  note       text CHECK (length(CAST(note AS blob)) <= 512),
  created_by text NOT NULL,
  created_at integer NOT NULL,
  PRIMARY KEY (tenant_id, subject, scope)
) STRICT;
CREATE INDEX suppression_newest ON suppression (tenant_id, created_at, subject, scope);

-- category: the one that its recipient may opt out of, written as in a scope; null where it is required, or was made by
-- a program that knew no categories.
ALTER TABLE outgoing_message ADD COLUMN category text;

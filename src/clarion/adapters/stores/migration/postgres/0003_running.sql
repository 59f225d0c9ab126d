-- What runs, and what callers may use: the processes that work, and the day's use of tenants and API keys.

-- One row for each process that runs workers. It writes the row when it starts and every few seconds after that, and
-- removes it when it stops; the row of one that was killed grows old and is swept. The lists are JSON.
CREATE TABLE worker (
  worker_id  uuid PRIMARY KEY,
  name       text NOT NULL CHECK (octet_length(name) <= 512),
  program    text NOT NULL CHECK (octet_length(program) <= 64),
  channels   text NOT NULL CHECK (octet_length(channels) <= 4096),
  accounts   text NOT NULL CHECK (octet_length(accounts) <= 65536),
  started_at timestamptz NOT NULL DEFAULT now(),
  seen_at    timestamptz NOT NULL DEFAULT now()
);

-- One row for each tenant that uses the API, with an empty key_id, and one for each of its keys: what it may use in a
-- day (UTC) and what it has used on `day`. A limit that is null is none. The first use of another day starts the counts
-- again, so that there is never more than this one row and nothing to sweep.
CREATE TABLE usage_count (
  tenant_id         text NOT NULL,
  key_id            text NOT NULL CHECK (octet_length(key_id) <= 64),
  day               date NOT NULL,
  requests          bigint NOT NULL DEFAULT 0,
  notifications     bigint NOT NULL DEFAULT 0,
  recipients        bigint NOT NULL DEFAULT 0,
  requests_max      bigint CHECK (requests_max >= 0),
  notifications_max bigint CHECK (notifications_max >= 0),
  recipients_max    bigint CHECK (recipients_max >= 0),
  last_used_at      timestamptz,
  PRIMARY KEY (tenant_id, key_id)
);

-- Which report goes to whom, how often; and which jobs tell of a report that lies in a messaging job.

-- subscription: what the administrator wrote, as JSON. plan_at: when its next run is to be planned, or looked after
-- again, or when the lease of whoever does so ends; null for one that is not active and has nothing planned any more.
-- plan_token: counts changes and claims.
CREATE TABLE report_subscription (
  tenant_id    text NOT NULL,
  guid         text NOT NULL,
  subscription text NOT NULL CHECK (length(CAST(subscription AS blob)) <= 32768),
  version      integer NOT NULL,
  plan_at      integer,
  plan_token   integer NOT NULL DEFAULT 0,
  changed_by   text NOT NULL,
  changed_at   integer NOT NULL,
  PRIMARY KEY (tenant_id, guid)
) STRICT;
CREATE INDEX report_subscription_plan ON report_subscription (plan_at, tenant_id, guid) WHERE plan_at IS NOT NULL;

-- The guid, as it stands in keys, of the messaging job whose content a job tells of: the parent of its outgoing rows.
ALTER TABLE notification_job ADD COLUMN messaging_job text;

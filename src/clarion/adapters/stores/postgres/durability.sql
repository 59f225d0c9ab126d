-- name: read_durability
-- Settings as they hold for this role and database. Without the right to see more, standbys are counted and their kind
-- stays unknown.
SELECT
  current_setting('fsync') AS fsync,
  current_setting('synchronous_commit') AS synchronous_commit,
  current_setting('synchronous_standby_names') AS synchronous_standby_names,
  (SELECT count(*) FROM pg_stat_replication) AS standbys,
  (SELECT count(*) FROM pg_stat_replication AS r WHERE r.sync_state = 'async') AS asynchronous;

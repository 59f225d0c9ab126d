-- 0014_latest.sql has built what takes its place.
DROP INDEX notification_job_time;

-- 0013_open.sql has built what takes its place.
DROP INDEX automation_scheduler_open;

-- name: write_heartbeat
-- One row for each process: the first heartbeat makes it, and the later ones move it on.
INSERT INTO worker (worker_id, name, program, channels, accounts, started_at, seen_at)
VALUES (:worker_id, :name, :program, :channels, :accounts, now(), now())
ON CONFLICT (worker_id) DO UPDATE
SET name = excluded.name, channels = excluded.channels, accounts = excluded.accounts, seen_at = excluded.seen_at;

-- name: sweep_workers
-- With every heartbeat, so that rows of processes that were killed do not pile up. There are few rows, and no index.
DELETE FROM worker WHERE seen_at <= now() - CAST(:kept_for AS interval);

-- name: end_worker
-- A process that stops takes its row with it.
DELETE FROM worker WHERE worker_id = :worker_id;

-- name: list_workers
-- The latest ones of all processes; a limit, should something start and die all day.
SELECT worker_id, name, program, channels, accounts, started_at, seen_at, now() AS now
FROM worker
ORDER BY seen_at DESC, worker_id
LIMIT :limit;

-- name: read_clock
-- When a store is opened, and first in every transaction: another process may have been ahead, or the first of this run
-- of the machine.
SELECT high_water, boot, ahead FROM store_clock WHERE only_row = 1;

-- name: keep_clock
-- With a transaction that writes anyway, at most once a second. It was read in the same transaction, and there is one
-- writer, so nothing is lost.
UPDATE store_clock SET high_water = :high_water, boot = :boot, ahead = :ahead WHERE only_row = 1;

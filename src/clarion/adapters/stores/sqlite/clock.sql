-- name: read_high_water
-- When a store is opened, before it hands out any time.
SELECT high_water FROM store_clock WHERE only_row = 1;

-- name: mark_high_water
-- With a transaction that writes anyway. The mark never falls: of two processes the one that is ahead sets it, and the
-- other learns of it by what this returns.
UPDATE store_clock SET high_water = max(high_water, clarion_now()) WHERE only_row = 1 RETURNING high_water;

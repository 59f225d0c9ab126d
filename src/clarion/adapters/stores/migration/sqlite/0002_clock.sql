-- By how much the store's time is ahead of the count of seconds since the machine was started, and which start that was.
-- The first process after a start of the machine writes it, and all others until the next one go by it, whatever their
-- wall clock says (I-37).
ALTER TABLE store_clock ADD COLUMN boot text NOT NULL DEFAULT '';
ALTER TABLE store_clock ADD COLUMN ahead integer NOT NULL DEFAULT 0;

-- By which edition of the time zone database the sources of a setting were planned; those planned before say none.
ALTER TABLE reminder_setting ADD COLUMN tzdata_version text NOT NULL DEFAULT '';

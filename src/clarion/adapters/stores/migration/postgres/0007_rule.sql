-- By which rule a job went to nobody at all, for programs; the words for people are its reason. Null where none did.
ALTER TABLE notification_scheduler ADD COLUMN rule text;

-- On whose behalf it is sent: its settings of the type decide whether it goes on. Null in jobs of none, and in those that
-- were made by a program that kept it in the sealed payload alone.
ALTER TABLE notification_job ADD COLUMN business_unit uuid;

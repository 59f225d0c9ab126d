-- What providers report about who wants no more.

-- signal: what an event says besides its status: that a bounce is a soft one, or that the recipient answered STOP or
-- START; null for most. subject: the index of the destination that such an answer came from, once it is applied.
ALTER TABLE webhook_event ADD COLUMN signal text;
ALTER TABLE webhook_event ADD COLUMN subject text;

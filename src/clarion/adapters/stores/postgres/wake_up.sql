-- name: wake
-- On a connection of its own and after the work was committed: a notification inside the writing transaction would make
-- all commits wait for each other. One statement for all topics that wait.
SELECT pg_notify($1, g.topic) FROM unnest($2::text[]) AS g (topic);

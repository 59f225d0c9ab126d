-- name: change_flow_counts
-- Once a commit for all that its methods changed: the rows are few and every batch of a campaign wants the same ones.
INSERT INTO flow_count (tenant_id, flow_id, status, reason_class, n)
SELECT g.value ->> 0, g.value ->> 1, g.value ->> 2, g.value ->> 3, g.value ->> 4
FROM json_each(:items) AS g
WHERE true
ORDER BY g.key
ON CONFLICT (tenant_id, flow_id, status, reason_class) DO UPDATE SET n = n + excluded.n;

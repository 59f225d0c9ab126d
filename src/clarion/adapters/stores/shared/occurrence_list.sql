-- name: list_occurrences
-- By when they are due, of one standing, behind a place and up to an instant.
SELECT s.*
FROM automation_scheduler AS s
WHERE
  s.standing = :standing AND s.tenant_id = :tenant_id
  AND (s.due_at, s.id) > (:after_at, :after_id) AND s.due_at <= :until
ORDER BY s.standing, s.tenant_id, s.due_at, s.id
LIMIT :limit;

-- name: list_occurrences_of_type
-- The same of reminders alone, or of reports alone: in an index of their own, for there are few of the one kind.
SELECT s.*
FROM automation_scheduler AS s
WHERE
  s.standing = :standing AND s.tenant_id = :tenant_id AND s.automation_type = :automation_type
  AND (s.due_at, s.id) > (:after_at, :after_id) AND s.due_at <= :until
ORDER BY s.standing, s.tenant_id, s.automation_type, s.due_at, s.id
LIMIT :limit;

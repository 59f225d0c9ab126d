-- Nothing: a server has a clock of its own.
SELECT 1;

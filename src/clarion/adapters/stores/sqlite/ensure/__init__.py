"""What happens inside the transactions of the ensure port, and the SQL of it.

Every function here takes an open transaction: insert what is absent, read in a second statement, settle with `answer`,
then write the support cases of conflicts. `record` is the plain shape, `job` adds the guard and the scheduler row,
`outgoing` is the hot path. Transactions begin and end in `core`.
"""

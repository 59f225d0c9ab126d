"""What happens inside the transactions of the queue port, and the SQL of it.

`stage` takes and finishes pending jobs; `claim` and `record` are the hot path of messages, one statement each;
`uncertain` and `cancel` are everything that happens to a message besides, and go through `move`, the one other
statement that changes a message's state. Locks are taken in one order everywhere: broadcasts, messages by bucket and
id, counters last and sorted; whoever takes messages in another order skips those that are locked, and so waits for
nobody. Transactions begin and end in `store`.
"""

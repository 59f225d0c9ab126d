"""What PostgreSQL has of its own in the queue: taking pending jobs and messages, and the fast paths of `domain.ruling`.

`stage` takes pending jobs, `claim` takes messages and `accept` records plain acceptances, each in one statement. All
else is in `shared.queue`. Locks are taken in one order everywhere, so that nobody deadlocks: broadcasts, messages by
bucket and id, counters last and sorted. A statement that takes messages in another order skips those that are locked.
Transactions begin and end in `store`.
"""

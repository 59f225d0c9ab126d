"""What SQLite has of its own in the queue, because it is the hottest path: taking pending jobs and messages.

`stage` takes pending jobs and `claim` takes messages. All else is in `shared.queue`.
"""

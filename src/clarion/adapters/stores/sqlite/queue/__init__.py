"""The queue: pending stages, flows, claims, results, uncertain sends and cancels.

`stage` moves scheduler rows. Outgoing rows are taken by `claim`, which has statements of its own because it is the
hottest path; every other change of theirs goes through `move`, which knows the table of legal moves and writes rows,
transitions, attempts and support cases in sets.
"""

"""The queue as both SQL stores have it: what happens to an outgoing row after it was claimed, and the stages of jobs.

Every change of an outgoing row is the same three steps: `ledger` locks the rows, `domain.ruling` says what becomes of
each, `ledger` writes it. How rows are claimed is in the folder of each engine.
"""

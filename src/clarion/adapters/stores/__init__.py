"""The stores: one folder an engine, split by port, its SQL beside it; and the schema history that they share.

A store opens a database that `migration` has prepared and never changes its schema.
"""

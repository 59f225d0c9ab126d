"""The stores: what both engines do alike (`shared`), a folder for each engine, and their schema history.

A store opens a database that `migration` has prepared and never changes its schema.
"""

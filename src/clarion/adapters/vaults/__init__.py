"""Keepers of the master key, one module a brand."""

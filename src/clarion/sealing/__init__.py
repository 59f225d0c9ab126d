"""Sealing: the tenants' keys (`keyring`), and for each private value the place it is sealed for (`place`).

The cipher itself is pure and stands in `domain.seal`. What is sealed when is decided by the callers: `dispatch` and
`catalog` seal what they store, the pipeline opens it.
"""

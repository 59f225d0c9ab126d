"""What tests of Clarion and of its plugins stand on: SQLite in memory, the contract suites, a real PostgreSQL.

It is shipped with the package so that a stranger's adapter is held to the same suites as ours. Nothing that runs in
production imports it.
"""

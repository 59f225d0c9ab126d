"""What tests of Clarion and of its plugins stand on: the memory store, the contract suites, a real PostgreSQL.

It is shipped with the package so that a stranger's adapter is held to the same suites as ours. Nothing that runs in
production imports it.
"""

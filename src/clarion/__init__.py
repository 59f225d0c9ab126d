"""Clarion, a self-hosted notification platform.

The version lives here and nowhere else: the build, `clarion --version` and a database's `min_program` are compared
with it. Nothing is imported here, so that naming the package costs nothing.
"""

__version__ = "0.1.0"

"""Providers of the last mile, one file each, opened by URL through the entry points `clarion.providers`.

An opener is awaited with the URL and a clock. A URL that cannot be used raises `BadConfiguration`, which never
repeats it: it may hold a password.
"""

"""The sandbox: providers that keep what they are given instead of sending it, and fail when they are asked to.

- `sandbox:///folder/sandbox.db` keeps every call in a file of its own (`provider`, `ledger`); what was accepted is the
  outbox, which can be read while it grows, and shown as its recipient would see it (`view`). What became of it is
  reported (`report`) by a postman that brings it to the server (`postman`).
- `sandbox+http://host:port` speaks to `python -m clarion.sandbox.server`, the same in a process of its own (`server`,
  `remote`).
- `null://` accepts and forgets (`null`).

How a call can be made to fail, by its destination or by chance, is in `fault`.
"""

"""The soak: `clarion serve` and `clarion work` as users start them, killed in the middle of their work.

    python -m clarion.testing.soak --store sqlite|postgres --messages 2000 --kills 100 [--json]

Clients send over HTTP and ask again with their keys until they are answered (`client`). The provider is the sandbox
over HTTP, inside this process, which is never killed (`provider`). The two programs are killed while a call is open,
while a request is open, and at the instant at which a client is told that its notification was accepted; PostgreSQL is
stopped as by a crash and started again (`leg`). The end is judged from what clients were told and what the sandbox took
(`verdict`).
"""

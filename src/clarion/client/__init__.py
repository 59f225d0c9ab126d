"""A small typed client of the HTTP API, for programs in Python.

    from clarion.client import Client, Recipient

    async with Client("http://127.0.0.1:8025", key="clarion_…") as clarion:
        sent = await clarion.send("welcome", to=Recipient(address="someone@example.com"), data={"name": "Robin"},
                                     key="signup-42")
        timeline = await clarion.timeline(sent.job_id)

`SyncClient` does the same without `async` and `await`.

`wire` holds the shapes that both sides speak in, `connection` the client itself, `sync` the one that waits. It needs
nothing of the server.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clarion.client.connection import ApiError, Client, Unreachable
    from clarion.client.sync import SyncClient
    from clarion.client.wire import Entity, Recipient, SendAnswer

__all__ = ["ApiError", "Client", "Entity", "Recipient", "SendAnswer", "SyncClient", "Unreachable"]

_PLACES = {"SyncClient": "sync", **dict.fromkeys(("Entity", "Recipient", "SendAnswer"), "wire")}
"""Modules of the names above; the others are in `connection`."""


def __getattr__(name: str) -> object:
    """Import the client when it is named: whoever needs only the shapes does not load an HTTP library."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_PLACES.get(name, 'connection')}"), name)

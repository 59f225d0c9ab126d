"""Slashes inside of names in a path: `/v1/people/user:a%2Fb/preferences` is about the user `a/b`.

Servers decode a path as a whole, and then a slash of a name cannot be told from one between names. So a slash that was
sent as `%2F` is hidden while the framework looks for the route, and is there again in what the route is given.
"""

import re
from typing import Any, Final
from urllib.parse import unquote

from litestar.types import HTTPScope, Scope

_SENT: Final = re.compile(rb"%2[Ff]")

_HIDDEN: Final = "\udc2f"
"""Half of a pair of UTF-16, which no text that was decoded from UTF-8 holds: nobody can send it."""


def hide_slashes(scope: HTTPScope) -> None:
    """Hide the slashes of names from the search for a route."""
    sent = scope["raw_path"]
    if _SENT.search(sent):
        parts = _SENT.split(sent)
        scope["path"] = _HIDDEN.join(unquote(part.decode("ascii", errors="replace")) for part in parts)


def show_slashes(scope: Scope) -> None:
    """Give names their slashes back, once it is known which names the path has, or that there is no such route."""
    if _HIDDEN in scope["path"]:
        scope["path"] = scope["path"].replace(_HIDDEN, "/")
        given: dict[str, Any] = scope.get("path_params", {})
        given.update({name: text.replace(_HIDDEN, "/") for name, text in given.items() if isinstance(text, str)})

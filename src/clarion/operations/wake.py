"""Waking the workers after a commit that gives them work."""

from collections.abc import Callable
from typing import Final

Wake = Callable[[str], None]
"""Called with what there is to do: `stages`, `outgoing`, `events`, `settings` or `due`. A worker that is not woken
finds it by itself, a second later."""

SETTINGS: Final = "settings"
"""A reminder setting or a report subscription was changed, so what waits because of it is planned anew."""

DUE: Final = "due"
"""An occurrence may have fallen due by what somebody did with it."""

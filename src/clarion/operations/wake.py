"""Waking the workers after a commit that gives them work."""

from collections.abc import Callable

Wake = Callable[[str], None]
"""Called with what there is to do: `stages`, `outgoing` or `events`. A worker that is not woken finds it by itself, a
second later."""

"""Renderers, found by name: `liquid` is Liquid for every part, with MJML for the HTML of a mail.

It merges in the process that asks, as commands, tests and the simulation need it, or in processes of their own, as a
program does that works for many.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, overload

from clarion.adapters.renderers.renderer import LiquidRenderer
from clarion.ports.renderer import Bundle

if TYPE_CHECKING:
    from clarion.adapters.renderers.pool import PoolRenderer


@overload
def open_renderer() -> LiquidRenderer: ...


@overload
def open_renderer(*, apart: bool, quarantined: Callable[[str, Bundle], None]) -> "LiquidRenderer | PoolRenderer": ...


def open_renderer(
    *, apart: bool = False, quarantined: Callable[[str, Bundle], None] | None = None
) -> "LiquidRenderer | PoolRenderer":
    """Make a renderer with nothing in memory yet, which merges in this process unless it is to merge `apart`.

    `quarantined` hears of every template version of a tenant that is not merged any more.
    """
    if not apart or quarantined is None:
        return LiquidRenderer()
    from clarion.adapters.renderers.pool import (
        PoolRenderer,  # here: a command and the pool's processes have no use for it
    )

    pool = PoolRenderer(quarantined=quarantined)
    pool.warm()
    return pool

"""Waking the workers of other processes after a command has stored work for them."""

from clarion.bootstrap import Platform, open_bell
from clarion.workers.bell import Topic


async def ring_once(platform: Platform) -> None:
    """Ring for work of every kind where the store carries rings; elsewhere the workers' next look finds it."""
    async with open_bell(platform.settings, hear=lambda _: None) as forward:
        if forward is not None:
            forward(Topic.STAGES)
            forward(Topic.OUTGOING)

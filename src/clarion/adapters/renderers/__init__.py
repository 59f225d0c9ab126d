"""Renderers, found by name: `liquid` is Liquid for every part, with MJML for the HTML of a mail."""

from clarion.adapters.renderers.renderer import LiquidRenderer


def open_renderer() -> LiquidRenderer:
    """Make a renderer with nothing in memory yet, which merges in this process."""
    return LiquidRenderer()

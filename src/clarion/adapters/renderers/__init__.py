"""Renderers, found by name: `liquid` is Liquid for every part, with MJML for the HTML of a mail."""

from clarion.adapters.renderers.renderer import LiquidRenderer
from clarion.ports.renderer import Renderer


def open_renderer() -> Renderer:
    """Make a renderer with nothing in memory yet."""
    return LiquidRenderer()

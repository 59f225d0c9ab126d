"""Merging a realistic mail, beside python-liquid alone with the same parts and the same data.

The mail has twenty variables and a loop of ten, in subject, HTML and text, in a layout of the size that MJML makes. The
library renders what the bundle holds, with its own tags and filters: it counts no steps, measures no value, knows no
recipient and judges no link.
"""

import time
from pathlib import Path
from types import MappingProxyType
from typing import Final

from liquid import Environment

from bench.figure import Figure, Round, figure
from clarion.adapters.renderers import open_renderer
from clarion.adapters.renderers.renderer import LiquidRenderer
from clarion.domain.content import EmailContent
from clarion.domain.definition import Definition
from clarion.domain.identity import Channel
from clarion.ports.renderer import Bundle, Merge

ROUNDS: Final = 5
"""How often both are measured in turn."""

MERGES: Final = 500
"""In one round: a quarter of a second each."""

FOLDER: Final = Path(__file__).with_name("mail")

DATA: Final = MappingProxyType(
    {
        "order": {"number": "A-10472", "placed": "2026-03-05T18:07:00+01:00", "currency": "EUR", "total": 184.5},
        "shop": {"name": "Linden & Sons", "street": "Hauptstraße 7", "city": "Graz", "phone": "+43 316 000000"},
        "shipping": {"name": "Maya Brandt", "street": "Am Anger 3", "city": "8010 Graz", "country": "Austria"},
        "delivery": {"carrier": "Post", "day": "2026-03-09", "window": "9 to 12"},
        "payment": {"method": "card", "last4": "4242"},
        "tracking_url": "https://track.example/p/10472?lang=en&ref=mail",
        "note": "Please leave it with the neighbours; they know.",
        "items": [
            {"name": f"Item no. {number}", "sku": f"SKU-{number:05}", "count": number, "price": 9.5 + number}
            for number in range(1, 11)
        ],
    }
)

RECIPIENT: Final = MappingProxyType({"name": "Maya <Brandt>", "salutation": "Dear"})


def mail(renderer: LiquidRenderer) -> Bundle:
    """Compile the mail."""
    files = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.liquid")}
    return renderer.compile(Definition(key="order", title="Order", channels=(Channel.EMAIL,)), files)


def ours(renderer: LiquidRenderer, bundle: Bundle) -> EmailContent:
    """Merge as the program does."""
    content = renderer.merge(bundle, Channel.EMAIL, Merge(dict(DATA), "en", "UTC", recipient=dict(RECIPIENT)))
    assert isinstance(content, EmailContent)
    return content


class Bare:
    """The library by itself, with the same parts parsed before."""

    def __init__(self, bundle: Bundle) -> None:
        """Parse the parts."""
        text, html = Environment(), Environment(autoescape=True)
        parts = bundle.parts[Channel.EMAIL]
        self._parts = {name: (html if name == "html" else text).from_string(source) for name, source in parts.items()}

    def render(self) -> EmailContent:
        """Render all parts."""
        merged = {name: part.render(**DATA, recipient=dict(RECIPIENT)).strip() for name, part in self._parts.items()}
        return EmailContent(**merged)


def figures(*, fsync_ms: float) -> list[Figure]:
    """Measure both in turn."""
    renderer = open_renderer()
    bundle = mail(renderer)
    bare = Bare(bundle)
    assert ours(renderer, bundle) == bare.render(), "the two render different mails"
    rounds: list[Round] = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        for _ in range(MERGES):
            ours(renderer, bundle)
        between = time.perf_counter()
        for _ in range(MERGES):
            bare.render()
        ended = time.perf_counter()
        rounds.append({"ours": MERGES / (between - began), "limit": MERGES / (ended - between)})
    return [
        figure(
            "merge of a mail",
            rounds,
            means="subject, HTML and text with twenty variables and a loop of ten, merged in the process",
            unit="mails/s",
            limit="python-liquid alone, the same parts",
            fsync_ms=fsync_ms,
        )
    ]

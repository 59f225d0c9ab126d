"""What is sent in a simulation: four notification types, each in two editions, and the people who get them.

Compiled by the real renderer, once in a Python process. Edition 2 differs in every channel, so that a retry which took
the newest template instead of the frozen one would send other bytes (I-15).
"""

from functools import cache
from typing import Final
from uuid import UUID

import msgspec

from clarion.adapters.renderers import open_renderer
from clarion.catalog.people import Contact, GroupEntry, PersonEntry
from clarion.domain.identity import Channel, Identity, Lane
from clarion.domain.outgoing import UncertainPolicy
from clarion.ports.facts import TemplateRow
from clarion.ports.renderer import Definition, Renderer

TENANT: Final = "school"
PEOPLE: Final = 4
GROUP: Final = UUID("6d9b1e34-52a7-4b1c-9a3e-0f6a5d6c7b81")

DEFINITIONS: Final = (
    Definition(key="notice", title="Notice", channels=(Channel.EMAIL, Channel.INBOX)),
    Definition(
        key="code",
        title="Code",
        channels=(Channel.SMS,),
        lane=Lane.CRITICAL,
        uncertain_policy=UncertainPolicy.PREFER_DUPLICATE,
        ttl_seconds=240,  # longer than a lease and a replay, shorter than most runs
    ),
    Definition(key="letter", title="Letter", channels=(Channel.EMAIL,), lane=Lane.BULK),
    Definition(
        key="flash",
        title="Flash",
        channels=(Channel.EMAIL, Channel.SMS),
        lane=Lane.HIGH,
        ttl_seconds=90,  # a little longer than a lease, so that some expire
    ),
)

_MAIL: Final = (
    "<mjml><mj-body><mj-section><mj-column><mj-text>{{ text }} (%d)</mj-text></mj-column></mj-section></mj-body></mjml>"
)
_FILES: Final = {
    Channel.EMAIL: {
        "email.subject.liquid": "{{ text }} (%d)",
        "email.mjml.liquid": _MAIL,
        "email.text.liquid": "{{ text }} (%d)",
    },
    Channel.SMS: {"sms.liquid": "{{ text }} (%d)"},
    Channel.INBOX: {"inbox.liquid": "{{ text }} (%d)\nbody"},
}


@cache
def renderer() -> Renderer:
    """Open the real renderer, which keeps nothing that one run could leave to another."""
    return open_renderer()


@cache
def templates(edition: int) -> tuple[TemplateRow, ...]:
    """Compile every type in one edition; the version is the store's to give."""
    rows = []
    for definition in DEFINITIONS:
        files = {name: text % edition for channel in definition.channels for name, text in _FILES[channel].items()}
        bundle = renderer().compile(definition, files)
        text = msgspec.json.encode(bundle).decode()
        rows.append(TemplateRow(template_key=definition.key, version=0, content_hash=bundle.content_hash, bundle=text))
    return tuple(rows)


def person(number: int, *, edition: int = 1) -> PersonEntry:
    """Describe a person; a later edition has moved to other addresses."""
    return PersonEntry(
        identity=Identity.user(f"u{number}"),
        name=f"Person {number}",
        contacts=(
            Contact(channel=Channel.EMAIL, destination=f"u{number}.{edition}@example.com", serial=edition),
            Contact(channel=Channel.SMS, destination=f"+120255501{number}{edition % 10}", serial=edition),
        ),
    )


def group() -> GroupEntry:
    """Describe the group: everybody."""
    return GroupEntry(
        guid=GROUP, name="Everybody", members=tuple(Identity.user(f"u{number}") for number in range(PEOPLE))
    )

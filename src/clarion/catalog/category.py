"""Categories: what people choose by. A tenant has those that its published notification types name.

Reads the latest version of every type; writes nothing.
"""

from collections.abc import Iterable, Sequence

import msgspec

from clarion.domain.identity import Channel
from clarion.ports.catalog import CatalogStore


class Category(msgspec.Struct, frozen=True, kw_only=True):
    """A category, the channels on which its types go, in the order of `Channel`, and the titles of those types.

    What is `required` cannot be refused: it goes to people whatever they prefer.
    """

    name: str
    required: bool
    channels: tuple[Channel, ...]
    titles: tuple[str, ...]


class _Definition(msgspec.Struct, frozen=True):
    """What is read here of a definition: a page that strangers ask for should not read the templates."""

    title: str
    channels: tuple[Channel, ...]
    category: str = "general"
    may_unsubscribe: bool = False


class _Bundle(msgspec.Struct, frozen=True):
    definition: _Definition


async def list_categories(catalog: CatalogStore, tenant_id: str) -> Sequence[Category]:
    """Return the categories of a tenant: those that people choose first, then the required ones, each by name."""
    rows = await catalog.list_templates(tenant_id)
    return categories_of(msgspec.json.decode(row.bundle, type=_Bundle).definition for row in rows)


def categories_of(definitions: Iterable[_Definition]) -> Sequence[Category]:
    """Gather types by their categories; publishing sees to it that the types of one agree whether it is required."""
    types: dict[str, list[_Definition]] = {}
    for one in definitions:
        types.setdefault(one.category, []).append(one)
    found = [
        Category(
            name=name,
            required=not any(one.may_unsubscribe for one in members),
            channels=tuple(channel for channel in Channel if any(channel in one.channels for one in members)),
            titles=tuple(one.title for one in members),
        )
        for name, members in types.items()
    ]
    return sorted(found, key=lambda one: (one.required, one.name))

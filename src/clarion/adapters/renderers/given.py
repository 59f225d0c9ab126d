"""What a merge reads: the data, and beside it the recipient, the entity, the public URL and the definition's links.

Names besides the data's are put in only where a bundle says that its parts read them (`Bundle.reads`), so that what was
published before they existed goes on to read its data. A link is put together when it is first read: the text of the
definition, with every value in it encoded so that it cannot leave its place in the URL.

At the door the recipient is not known. Whatever a template reads of it is then a text with every field. Pure.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Final
from urllib.parse import quote

from clarion.adapters.renderers.variables import ANYTHING, LIQUID, find
from clarion.domain.definition import RESERVED, Definition
from clarion.domain.identity import Channel
from clarion.errors import InvalidInput
from clarion.ports.renderer import Bundle, Merge

EXAMPLE_URL: Final = "https://clarion.example"
"""Stands for the public URL where it is not known: while a notification is published or tried."""

_VARIABLE: Final = re.compile(r"\{\{\s*([\w.]+)\s*\}\}", re.ASCII)


class Given(dict[str, object]):
    """The names of one merge; those of links are looked up once they are read.

    `absent` names, for a link that could not be put together, the variable that it lacks.
    """

    __slots__ = ("_links", "absent")

    def __init__(self, names: Mapping[str, object], links: Mapping[str, str]) -> None:
        """Have these names, and links to be made of them."""
        super().__init__(names)
        for name in links:
            self.pop(name, None)
        self._links = links
        self.absent: dict[str, str] = {}

    def __missing__(self, name: str) -> object:
        """Put a link together, or have no such name."""
        pieces: list[str] = []
        for number, piece in enumerate(_VARIABLE.split(self._links[name])):  # every second one is a variable
            value = piece if number % 2 == 0 else find(self, piece)
            if not isinstance(value, str | int | float):
                self.absent[name] = piece
                raise KeyError(name)
            pieces.append(str(value) if number % 2 == 0 or piece == "public_url" else quote(_written(value), safe=""))
        self[name] = link = "".join(pieces)
        return link


def given(bundle: Bundle, channel: Channel, merge: Merge) -> Mapping[str, object]:
    """Bring together what a channel's parts read in a merge."""
    others = {"recipient": dict(merge.recipient), "entity": dict(merge.entity), "public_url": merge.public_url}
    return Given({**merge.data, **others}, bundle.definition.links) if bundle.reads.get(channel) else merge.data


def given_at_the_door(
    bundle: Bundle, channel: Channel, data: Mapping[str, object], entity: Mapping[str, object]
) -> Mapping[str, object]:
    """Bring together what a channel's parts read in a trial, when nobody knows the recipient."""
    others = {"recipient": ANYTHING, "entity": dict(entity), "public_url": EXAMPLE_URL}
    return Given({**data, **others}, bundle.definition.links) if bundle.reads.get(channel) else data


def sample_of(definition: Definition) -> Merge:
    """Make a merge of a definition's sample, whose tables `recipient` and `entity` stand for the two."""
    data = {name: value for name, value in definition.sample.items() if name not in ("recipient", "entity")}
    recipient, entity = (definition.sample.get(name) for name in ("recipient", "entity"))
    return Merge(
        data,
        recipient=recipient if isinstance(recipient, dict) else {},
        entity=entity if isinstance(entity, dict) else {},
        public_url=EXAMPLE_URL,
    )


def read_besides(definition: Definition, names: Collection[str]) -> set[str]:
    """Tell which of the names that templates read do not come from the data, those that their links read included."""
    links = {name for name in names if name in definition.links}
    of_links = {path.partition(".")[0] for link in links for path in link_paths(definition.links[link])}
    return links | {name for name in RESERVED if name in names or name in of_links}


def needed_of(definition: Definition, paths: Collection[str]) -> Iterator[str]:
    """Give the paths that must be there before a recipient is known: in place of a link, what it is made of."""
    for path in paths:
        for one in link_paths(definition.links[path]) if path in definition.links else [path]:
            if one.partition(".")[0] not in ("recipient", "public_url"):
                yield one


def link_paths(link: str) -> list[str]:
    """Name the variables in a link."""
    return _VARIABLE.findall(link)


def check_names(bundle: Bundle, data: Mapping[str, object]) -> None:
    """Refuse data under a reserved name, unless the bundle is so old that it reads the name from the data."""
    for name in sorted(data.keys() & (RESERVED | bundle.definition.links.keys())):
        if any(name in names for names in bundle.reads.values()) or not _mentions(bundle, name):
            raise InvalidInput(
                "the name is reserved: templates read something else by it than data",
                field=f"data.{name}",
                hint="give it another name, in data and in the templates",
            )


def _mentions(bundle: Bundle, name: str) -> bool:
    """Tell whether a bundle's Liquid has a name in it."""
    texts = (text for parts in bundle.parts.values() for text in parts.values())
    return any(re.search(rf"\b{name}\b", liquid) for text in texts for liquid in LIQUID.findall(text))


def _written(value: str | float) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(value)

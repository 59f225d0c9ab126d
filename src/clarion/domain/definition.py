"""A definition: what a notification is, as `definition.toml` says, and which values in it make sense.

The page of definition files is drawn from the fields here and their descriptions (`tools/docs.py`). A field that is
added needs a default: definitions are stored in published versions, and those never change. Pure: reading files is
`catalog.folder`, what templates say is the renderer's.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import pairwise
from typing import Annotated, Final
from unicodedata import is_normalized

import msgspec

from clarion.domain.identity import Channel, Lane
from clarion.domain.key import suppression_scope
from clarion.domain.locale import normal
from clarion.domain.outgoing import UncertainPolicy
from clarion.errors import InvalidKey

TTL_SECONDS_MAX: Final = 30 * 24 * 3600
"""A month: nobody wants a notification that is older."""

ATTEMPTS_MAX: Final = 20
"""Calls for one message that a definition may ask for: with the usual waits they take most of a day."""

LOCALES_MAX: Final = 50
"""Languages of one notification: each is compiled and stored whole."""

CATEGORY_CHARS_MAX: Final = 60
"""It stands in the token of an unsubscribe link, which must fit into one line of a mail."""

LINKS_MAX: Final = 50
LINK_CHARS_MAX: Final = 2000
"""As much of a URL as every browser takes."""

RESERVED: Final = frozenset({"recipient", "entity", "public_url"})
"""Names that templates read and that no data can have; the names of a definition's links are reserved too."""


class ChannelPolicy(StrEnum):
    """On which of its channels a notification goes to one recipient."""

    ALL = "all"
    FIRST = "first"
    CASCADE = "cascade"


class Definition(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a notification is, as `definition.toml` says."""

    key: Annotated[str, msgspec.Meta(description="its name: 1 to 63 of `a-z`, `0-9` and `-`, the first no `-`")]
    title: Annotated[str, msgspec.Meta(description="what it is, in a few words")]
    description: Annotated[str, msgspec.Meta(description="for people")] = ""
    category: Annotated[
        str, msgspec.Meta(description="what kind of notification it is; people unsubscribe from a category")
    ] = "general"
    channels: Annotated[
        tuple[Channel, ...],
        msgspec.Meta(description="any of `email`, `sms`, `push`, `chat`, `inbox`, each once, in the order preferred"),
    ]
    channel_policy: Annotated[
        ChannelPolicy,
        msgspec.Meta(
            description="`all`: on every channel that leads to the recipient; `first`: on the first one only; "
            "`cascade`: on the first one, and on the next if it did not arrive in time (falling back is not built yet: "
            "only the first is sent)"
        ),
    ] = ChannelPolicy.ALL
    fallback_after_seconds: Annotated[
        dict[Channel, int],
        msgspec.Meta(
            description="of a `cascade`: a table with the seconds to wait on each channel before the next one is "
            "tried; every channel but the last has its line"
        ),
    ] = {}
    lane: Annotated[
        Lane,
        msgspec.Meta(
            description="how urgent it is: `critical`, `high`, `normal` or `bulk`; a send may ask for a less urgent "
            "one, and for a more urgent one with a [role](api.md#keys-and-roles)"
        ),
    ] = Lane.NORMAL
    uncertain_policy: Annotated[
        UncertainPolicy,
        msgspec.Meta(description="`prefer_loss`, or `prefer_duplicate` where nothing at all is worse than twice"),
    ] = UncertainPolicy.PREFER_LOSS
    ttl_seconds: Annotated[
        int | None,
        msgspec.Meta(
            description="so long after it was accepted, or after the time that it was put off to, it is not sent any "
            "more; at most a month"
        ),
    ] = None
    attempts_max: Annotated[
        int | None,
        msgspec.Meta(description=f"how often a provider is called for one message: 1 to {ATTEMPTS_MAX}, usually 8"),
    ] = None
    one_time_code: Annotated[
        bool,
        msgspec.Meta(
            description="it carries a secret that is used once: its data is erased when all of it is over, and it is "
            "not shown again; needs `ttl_seconds`"
        ),
    ] = False
    may_unsubscribe: Annotated[
        bool,
        msgspec.Meta(description="whether people may unsubscribe from it; the same in all types of one category"),
    ] = False
    locales: Annotated[
        tuple[str, ...],
        msgspec.Meta(description="the languages that it is written in, such as `de` or `pt-BR`, the usual one first"),
    ] = ("en",)
    layout: Annotated[
        str | None,
        msgspec.Meta(description="the layout around the mail: `school` for `layouts/school.mjml.liquid`"),
    ] = None
    links: Annotated[
        dict[str, str],
        msgspec.Meta(
            description="a table of links that templates read by their upper-case names: each begins with `https://` "
            "and a host, or with `{{ public_url }}`, and values in it are URL-encoded"
        ),
    ] = {}
    required: Annotated[
        tuple[str, ...],
        msgspec.Meta(description="variables that the data must have besides those that the templates read"),
    ] = ()
    sample: Annotated[
        dict[str, object],
        msgspec.Meta(
            description="data to try the templates with; they are merged with it when the notification is published. "
            "Its tables `recipient` and `entity` stand for the person and the entity"
        ),
    ] = {}


class Complaint(msgspec.Struct, frozen=True):
    """A field that has the right type and makes no sense, and what to write instead."""

    field: str
    hint: str


_DEPENDS: Final[Mapping[str, frozenset[str]]] = {
    "channel_policy": frozenset({"channels"}),
    "fallback_after_seconds": frozenset({"channels", "channel_policy", "ttl_seconds"}),
    "one_time_code": frozenset({"channels", "ttl_seconds"}),
    "required": frozenset({"links"}),
    "sample": frozenset({"links"}),
}
"""Fields whose sense depends on others."""


def complaints_about(definition: Definition, *, unknown: Collection[str] = ()) -> list[Complaint]:
    """Name everything in a definition that makes no sense; of fields that are `unknown` nothing follows."""
    given = {*unknown}
    return [
        one
        for one in _complaints(definition)
        for name in [one.field.partition(".")[0]]
        if name not in given and given.isdisjoint(_DEPENDS.get(name, ()))
    ]


def _complaints(definition: Definition) -> list[Complaint]:
    return [
        *_basic(definition),
        *_channels(definition),
        *_languages(definition),
        *_links(definition),
        *_data(definition),
    ]


def unlike_in_category(definition: Definition, others: Iterable[Definition]) -> Definition | None:
    """Return another type of the same category that says otherwise whether people may unsubscribe from it.

    People unsubscribe from a category as a whole, so it cannot be both.
    """
    for other in others:
        if other.category == definition.category and other.may_unsubscribe != definition.may_unsubscribe:
            return other
    return None


def hashed_form(definition: Definition) -> dict[str, object]:
    """Give what of a definition counts for its content hash.

    Fields that came later count only where they say something, so that a definition which did not change keeps its
    version when the program is upgraded.
    """
    plain: dict[str, object] = msgspec.to_builtins(definition)
    usual: dict[str, object] = msgspec.to_builtins(Definition(key="", title="", channels=()))
    return {name: value for name, value in plain.items() if name in _FIRST_FIELDS or value != usual[name]}


_FIRST_FIELDS: Final = frozenset(
    {"key", "title", "description", "category", "channels", "lane"}
    | {"uncertain_policy", "ttl_seconds", "required", "sample"}
)

_KEY: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,62}", re.ASCII)
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*", re.ASCII)
_LINK_NAME: Final = re.compile(r"[A-Z][A-Z0-9_]{0,62}", re.ASCII)
_LINK: Final = re.compile(
    # The host stands in the definition: data must not choose where a link leads to. After it comes nothing that a URL
    # cannot hold, except variables.
    r"(https://[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[0-9]{1,5})?|\{\{ *public_url *\}\})"
    r"([/?#]([A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=%-]|\{\{ *[A-Za-z_][\w.]* *\}\})*)?",
    re.ASCII,
)


def _basic(definition: Definition) -> Iterator[Complaint]:
    ttl, attempts = definition.ttl_seconds, definition.attempts_max
    if not _KEY.fullmatch(definition.key):
        yield Complaint("key", "use 1 to 63 of a-z, 0-9 and hyphens, the first no hyphen")
    if not definition.title.strip():
        yield Complaint("title", "say in a few words what the notification is")
    if ttl is not None and not 1 <= ttl <= TTL_SECONDS_MAX:
        yield Complaint("ttl_seconds", f"use 1 to {TTL_SECONDS_MAX}, or leave it out")
    if attempts is not None and not 1 <= attempts <= ATTEMPTS_MAX:
        yield Complaint("attempts_max", f"use 1 to {ATTEMPTS_MAX}, or leave it out")
    if definition.one_time_code and ttl is None:
        yield Complaint("one_time_code", "add ttl_seconds, a few minutes: no code is good for ever")
    if definition.one_time_code and Channel.INBOX in definition.channels:
        yield Complaint("one_time_code", "take inbox out of channels: a line in an inbox stays there")
    if not 1 <= len(definition.category) <= CATEGORY_CHARS_MAX or not definition.category.isprintable():
        yield Complaint("category", f"use one line of 1 to {CATEGORY_CHARS_MAX} characters")
    elif not is_normalized("NFC", definition.category):
        yield Complaint("category", "write its letters composed (NFC): an accent is no character of its own")
    elif not all(_is_scope(definition.category, channel) for channel in Channel):
        yield Complaint("category", "shorten it: with a channel behind it, it is no key of what people refuse")


def _is_scope(category: str, channel: Channel) -> bool:
    """Tell whether people can refuse a category on a channel: a key has bytes, and a letter may take nine of them."""
    try:
        return bool(suppression_scope(category=category, channel=channel))
    except InvalidKey:
        return False


def _channels(definition: Definition) -> Iterator[Complaint]:
    channels, is_cascade = definition.channels, definition.channel_policy is ChannelPolicy.CASCADE
    if not channels:
        yield Complaint("channels", "list at least one")
    if len(set(channels)) < len(channels):
        yield Complaint("channels", "list each once")
    if is_cascade and len(channels) < 2:
        yield Complaint("channel_policy", "a cascade needs a second channel")
    if is_cascade:
        yield from _cascade(definition)
    elif definition.fallback_after_seconds:
        yield Complaint("fallback_after_seconds", 'it goes with channel_policy = "cascade"')


def _cascade(definition: Definition) -> Iterator[Complaint]:
    field, channels, waits = "fallback_after_seconds", definition.channels, definition.fallback_after_seconds
    for channel, following in pairwise(channels):
        if channel not in waits:
            yield Complaint(field, f"say how long to wait on {channel} before {following} is tried: {channel} = 600")
    for channel, seconds in waits.items():
        if channel not in channels[:-1]:
            yield Complaint(field, f"take {channel} out: no channel follows it")
        if not 1 <= seconds <= TTL_SECONDS_MAX:
            yield Complaint(f"{field}.{channel}", f"use 1 to {TTL_SECONDS_MAX}")
    if definition.ttl_seconds is not None and sum(waits.values()) >= definition.ttl_seconds:
        yield Complaint(field, "wait less than ttl_seconds in all: the last channel has no time left")


def _languages(definition: Definition) -> Iterator[Complaint]:
    locales = definition.locales
    if not 1 <= len(locales) <= LOCALES_MAX:
        yield Complaint("locales", f"list 1 to {LOCALES_MAX}, the usual one first")
    if len(set(locales)) < len(locales):
        yield Complaint("locales", "list each once")
    for wrong in [one for one in locales if normal(one) != one]:
        yield Complaint("locales", f"write languages such as de, pt-BR or zh-Hant, not {wrong[:40]!r}")
    if definition.layout is not None and not _KEY.fullmatch(definition.layout):
        yield Complaint("layout", "name a file of layouts/ without its ending: 1 to 63 of a-z, 0-9 and hyphens")


def _links(definition: Definition) -> Iterator[Complaint]:
    if len(definition.links) > LINKS_MAX:
        yield Complaint("links", f"list at most {LINKS_MAX}")
    for name, link in definition.links.items():
        if not _LINK_NAME.fullmatch(name):
            yield Complaint(f"links.{name[:63]}", "use upper-case letters, digits and _, such as INCIDENT_DETAILS_LINK")
        if len(link) > LINK_CHARS_MAX:
            yield Complaint(f"links.{name[:63]}", f"use at most {LINK_CHARS_MAX} characters")
        elif not _LINK.fullmatch(link):
            yield Complaint(
                f"links.{name[:63]}",
                "begin with https:// and a host, or with {{ public_url }}, and use only what a URL can hold and plain "
                "variables: https://app.example/incidents/{{ entity.guid }}",
            )


def _data(definition: Definition) -> Iterator[Complaint]:
    for wrong in [one for one in definition.required if not _VARIABLE.fullmatch(one)]:
        yield Complaint("required", f"write names such as child.name, not {wrong[:40]!r}")
    for taken in [one for one in definition.required if one.partition(".")[0] in {*RESERVED, *definition.links}]:
        yield Complaint("required", f"take {taken!r} out: it does not come from the data")
    if not _is_json(definition.sample):
        yield Complaint("sample", "use text, numbers, lists and tables; write a date as text")
    for name in sorted(definition.sample.keys() & {"public_url", *definition.links}):
        yield Complaint(f"sample.{name}", "take it out: it does not come from the data")
    for name in ("recipient", "entity"):
        if not isinstance(definition.sample.get(name, {}), Mapping):
            yield Complaint(f"sample.{name}", f"make it a table: [sample.{name}]")


def _is_json(value: object) -> bool:
    """Tell whether TOML gave something that JSON has too: it has no dates."""
    if isinstance(value, Mapping):
        return all(map(_is_json, value.values()))
    if isinstance(value, Sequence) and not isinstance(value, str):
        return all(map(_is_json, value))
    return isinstance(value, str | int | float)

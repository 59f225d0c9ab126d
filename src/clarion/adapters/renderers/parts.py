"""The parsed parts of bundles, held in memory: by content hash, locale and channel.

Parsing a mail takes many times as long as merging it, so what was parsed is kept, up to a number of parts. Reads and
writes nothing else. Merging is in `merging`.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from threading import Lock
from typing import Final, TypeVar

import msgspec
from liquid.template import BoundTemplate

from clarion.adapters.renderers.compiling import parse_part
from clarion.adapters.renderers.links import Written, written_links
from clarion.adapters.renderers.outcome import NOT_EMPTY, ONE_LINE
from clarion.adapters.renderers.variables import LIQUID, Needs, needs_of
from clarion.domain.header import SUBJECT_CHARS_MAX
from clarion.domain.held import Held
from clarion.domain.identity import Channel
from clarion.domain.locale import choose
from clarion.errors import InvalidInput, RenderFailed
from clarion.ports.renderer import Bundle

PARSED_BYTES_MAX: Final = 48 * 1024 * 1024
"""Trees of channels of bundles, in one locale each, and as much again for those that are tried: hundreds of large mails
at 300 kB each."""

BRACE_BYTES: Final = 1000
"""What a brace of a template takes in its tree: half a kilobyte in `{{ e }}`, and one where there are filters."""

CERTAIN_MAX: Final = 10_000
"""Characters that a plain part can write at most for its merge not to be tried: far below every limit."""

SMALL_MAX: Final = 120
"""Braces in the sources of a bundle that is parsed at once: some eighty variables and tags, two milliseconds."""


class Part(msgspec.Struct, frozen=True):
    """One parsed part: its tree, what its merges need, and the links that it wrote itself if data writes others."""

    tree: BoundTemplate
    needs: Needs
    written_links: Written | None
    is_one_line: bool
    has_links: bool
    chars: int

    def is_certain(self, name: str, size: int, *, has_break: bool) -> bool:
        """Tell without a merge that none can fail with complete data of a size, and with a line break in it or none."""
        return (
            self.needs.plain
            and self.written_links is None
            and not self.has_links
            and (name not in ONE_LINE or (self.is_one_line and not has_break))
            and (self.needs.has_text or name not in NOT_EMPTY)
            and self.needs.outputs * size <= CERTAIN_MAX
            and (name != "subject" or self.chars + self.needs.outputs * size <= SUBJECT_CHARS_MAX)
        )


Parts = dict[str, Part]
"""The parts of a channel in one locale, by name."""


_Place = TypeVar("_Place")
_Value = TypeVar("_Value")


class PartCache:
    """Parts by bundle, locale and channel. May be used from several threads at once."""

    def __init__(self) -> None:
        """Start with nothing parsed."""
        self.parsed = Held[tuple[str, str, Channel], Parts](PARSED_BYTES_MAX)
        self._trials = Held[tuple[str, Channel], tuple[Parts, ...]](PARSED_BYTES_MAX)
        self._lock = Lock()

    def get(self, bundle: Bundle, channel: Channel, wanted: str, *, begin: Callable[[], None] = lambda: None) -> Parts:
        """Return a channel's parts in the locale for a wanted one: from memory, or parsed and kept.

        `begin` is called before anything is parsed.
        """
        locale = chosen(wanted, tuple(bundle.locales)) if wanted and bundle.locales else ""
        place = (bundle.content_hash, locale, channel)
        parts = self.parsed.get(place)
        if parts is None:
            sources = bundle.locales[locale] if locale else bundle.parts
            if channel not in sources:
                raise RenderFailed(
                    f"the notification {bundle.definition.key!r} has nothing for {channel}",
                    hint="add the channel to it",
                )
            begin()
            parts = _parsed(bundle, channel, sources[channel])
            self._keep(self.parsed, place, parts, sources=[sources[channel]])
        return parts

    def tried(self, bundle: Bundle, *, begin: Callable[[], None] = lambda: None) -> Iterator[tuple[Channel, Parts]]:
        """Give what is merged to find out whether data can be: of all locales, what does not have the same Liquid.

        `begin` is called before each locale of a channel is parsed.
        """
        for channel in bundle.definition.channels:
            place = (bundle.content_hash, channel)
            trials = self._trials.get(place)
            if trials is None:
                parsed: list[Parts] = []
                distinct = list(_distinct([bundle.parts, *bundle.locales.values()], channel))
                for one in distinct:
                    begin()
                    parsed.append(_parsed(bundle, channel, one))
                trials = tuple(parsed)
                self._keep(self._trials, place, trials, sources=distinct)
            for parts in trials:
                yield channel, parts

    def is_parsed_soon(self, bundle: Bundle) -> bool:
        """Tell whether a bundle is in memory, or so small that parsing it takes no time worth a thought."""
        if all((bundle.content_hash, channel) in self._trials for channel in bundle.definition.channels):
            return True
        wholes = [bundle.parts, *bundle.locales.values()]
        return sum(text.count("{") for one in wholes for parts in one.values() for text in parts.values()) <= SMALL_MAX

    def _keep(
        self, held: Held[_Place, _Value], place: _Place, value: _Value, *, sources: Sequence[Mapping[str, str]]
    ) -> None:
        """Hold what was parsed of these sources."""
        size = sum(len(text) + BRACE_BYTES * text.count("{") for one in sources for text in one.values())
        with self._lock:  # the door may parse in a thread
            held.put(place, value, size=size)


@lru_cache(maxsize=1024)
def chosen(wanted: str, others: tuple[str, ...]) -> str:
    """Choose between locales of which the default has no name; asked for every merge."""
    return choose([wanted], ["", *others])


def _distinct(locales: Sequence[dict[Channel, dict[str, str]]], channel: Channel) -> Iterator[dict[str, str]]:
    """Give each locale's parts of a channel without those whose Liquid another one has: only their words differ."""
    seen: set[tuple[str, ...]] = set()
    for one in locales:
        parts = {}
        for name, source in one[channel].items():
            liquid = (name, *LIQUID.findall(source))
            if liquid not in seen:
                seen.add(liquid)
                parts[name] = source
        if parts:
            yield parts


def _parsed(bundle: Bundle, channel: Channel, sources: Mapping[str, str]) -> Parts:
    """Parse a channel's parts; RenderFailed where one was published by a program that knew more than this one."""
    parts = {}
    for name, source in sources.items():
        try:
            parts[name] = _part(name, source, bundle.definition.links)
        except InvalidInput as error:
            raise RenderFailed(f"{channel} {name}: {error.message}", part=name, hint=error.hint) from None
    return parts


def _part(name: str, source: str, links: Collection[str]) -> Part:
    """Parse a part of a bundle, and note what there is to know about it."""
    tree = parse_part(name, source, file=name)
    needs = needs_of(tree)
    return Part(
        tree,
        needs,
        written_links(source, {*links, "public_url"}) if name == "html" else None,
        is_one_line=len(source.strip().splitlines()) == 1,
        has_links=not needs.names.isdisjoint(links),
        chars=len(source),
    )

"""The registry of those who handle events: ours, and those of strangers, which run apart.

An event goes to each of them in turn; one that fails has it handled again by all. Reads and writes nothing itself.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Final

import msgspec

from clarion.domain.entity_event import EntityEvent, EventData
from clarion.errors import BadConfiguration
from clarion.ports.post_processor import EventPostProcessor
from clarion.producers.apart import PATIENCE, Apart, Patience

COUNTS_MAX: Final = 20
"""Counts of one post-processor: they are stored with the event, and people read them."""


class ForeignProcessor:
    """A stranger's post-processor, in a thread of its own."""

    def __init__(self, name: str, processor: object, *, patience: Patience = PATIENCE) -> None:
        """Register it under its entry point's name; raise BadConfiguration where it is none."""
        if not isinstance(processor, EventPostProcessor):
            raise BadConfiguration(
                f"the plugin {name!r} of clarion.events is no EventPostProcessor",
                hint="give it event_types and process, or uninstall it",
            )
        types = processor.event_types
        self.event_types: Collection[str] | None = None if types is None else frozenset(types)
        self._name = name
        self._processor = processor
        self._apart = Apart(name, patience=patience)

    async def process(self, tenant_id: str, event: EntityEvent, told: EventData) -> Mapping[str, int]:
        """Have it process an event, and name its counts as its own."""

        async def question() -> dict[str, int]:
            found: object = await self._processor.process(tenant_id, event, told)
            try:
                counts = msgspec.convert(found, dict[str, int])
            except msgspec.ValidationError:
                counts = None
            if counts is None or len(counts) > COUNTS_MAX:
                raise self._apart.failure(f"answered no mapping of at most {COUNTS_MAX} counts to an event")
            return {f"{self._name}.{what}": count for what, count in counts.items()}

        return await self._apart.ask("process", question)

    async def close(self) -> None:
        """End its threads."""
        await self._apart.close()


class PostProcessors:
    """All that handle events in one process."""

    def __init__(self, ours: Sequence[EventPostProcessor], foreign: Sequence[ForeignProcessor] = ()) -> None:
        """Ask ours first, and then those of strangers."""
        self._all: tuple[EventPostProcessor, ...] = (*ours, *foreign)
        self._foreign = tuple(foreign)

    async def process(self, tenant_id: str, event: EntityEvent, told: EventData) -> Mapping[str, int]:
        """Have everybody who wants an event of this type process it, and add up what that came to."""
        counts: Counter[str] = Counter()
        for one in self._all:
            if one.event_types is None or event.event_type in one.event_types:
                counts.update(await one.process(tenant_id, event, told))
        return counts

    async def close(self) -> None:
        """End what those of strangers run in."""
        for one in self._foreign:
            await one.close()
